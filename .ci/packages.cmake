# The Debian packages: `tessera`, the program, and `libtessera-dev`, headers and libraries. .ci/package builds them.
set(CPACK_GENERATOR DEB)
set(CPACK_COMPONENTS_ALL program development)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_COMPONENTS_GROUPING IGNORE)
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_PACKAGE_CONTACT "Tessera maintainers <tessera@users.noreply.github.com>" CACHE STRING "Who made the packages")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "deep-learning engine for vision transformers on small data sets")
set(CPACK_STRIP_FILES ON)
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE
    WORLD_READ WORLD_EXECUTE)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_RELEASE 1)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)

set(CPACK_DEBIAN_PROGRAM_PACKAGE_NAME tessera)
set(CPACK_DEBIAN_PROGRAM_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PROGRAM_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PROGRAM_PACKAGE_DEPENDS libopenblas0)  # loaded when it is needed, so no tool sees it
set(CPACK_DEBIAN_PROGRAM_PACKAGE_RECOMMENDS "libcurl4, libarchive13")  # likewise, for tessera data fetch
set(CPACK_COMPONENT_PROGRAM_DESCRIPTION "Deep learning for vision transformers on small data sets
 The program tessera trains vision transformers on small data sets, evaluates
 and exports them, and shows every value and gradient of a pass.")

set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_NAME libtessera-dev)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_DEPENDS
    "pkg-config, libtbb-dev, nlohmann-json3-dev, libopenblas-dev, libfmt-dev, zlib1g-dev, nettle-dev, libxxhash-dev, libjpeg-dev")
set(CPACK_COMPONENT_DEVELOPMENT_DESCRIPTION "Headers and libraries of the deep-learning engine tessera
 Tensors, reverse-mode differentiation, the ops and their gradients, models,
 data sets and training, for C++20 programs: find_package(tessera) in CMake.")

# What Debian asks of every package.
string(TIMESTAMP day "%a, %d %b %Y %H:%M:%S +0000" UTC)  # of SOURCE_DATE_EPOCH where it is set
foreach(component IN ITEMS program development)
  string(TOUPPER ${component} upper)
  set(name ${CPACK_DEBIAN_${upper}_PACKAGE_NAME})
  file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/changes/${name} @ONLY CONTENT
       "tessera (@PROJECT_VERSION@-1) unstable; urgency=medium\n\n  * README.md and the repository's history tell what is new.\n\n -- @CPACK_PACKAGE_CONTACT@  @day@\n")
  install(CODE "execute_process(COMMAND gzip -9nc \"${PROJECT_BINARY_DIR}/changes/${name}\" COMMAND_ERROR_IS_FATAL ANY
                OUTPUT_FILE \"${PROJECT_BINARY_DIR}/changes/${name}.gz\")" COMPONENT ${component})
  install(FILES ${PROJECT_BINARY_DIR}/changes/${name}.gz DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/${name}
          RENAME changelog.Debian.gz COMPONENT ${component})
  install(FILES ${PROJECT_SOURCE_DIR}/.ci/copyright DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/${name}
          COMPONENT ${component})
endforeach()
include(CPack)
