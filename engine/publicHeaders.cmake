cmake_minimum_required(VERSION 3.25)

# The headers that an embedder sees. <tessera/engine.h>, models.h, data.h, training.h, inspector.h and check.h name
# those meant for users; these and whatever they include are public, and no other header is. Sources spell the paths from the
# repository's root ("engine/core/tensor.h"), users as <tessera/engine/core/tensor.h>; apps/training is
# <tessera/training/...>, and apps/inspector <tessera/inspector/...>.

# A part's umbrella header in this tree.
set(tessera_umbrella_engine engine/engine.h)
set(tessera_umbrella_check engine/check/check.h)
set(tessera_umbrella_models models/models.h)
set(tessera_umbrella_data data/data.h)
set(tessera_umbrella_training apps/training/training.h)
set(tessera_umbrella_inspector apps/inspector/inspector.h)

set(tessera_include_line "#[ \t]*include[ \t]+\"((engine|models|data|apps/training|apps/inspector)/[^\"]+)\"")

# tessera_public_headers(OUT SOURCE PART...): the public headers of the parts, from SOURCE.
function(tessera_public_headers out source)
  set(found "")
  set(pending "")
  foreach(part IN LISTS ARGN)
    list(APPEND pending ${tessera_umbrella_${part}})
  endforeach()
  while(pending)
    list(POP_FRONT pending header)
    list(APPEND found ${header})
    file(STRINGS ${source}/${header} lines REGEX "${tessera_include_line}")
    foreach(line IN LISTS lines)
      string(REGEX MATCH "${tessera_include_line}" line "${line}")
      if(NOT CMAKE_MATCH_1 IN_LIST found AND NOT CMAKE_MATCH_1 IN_LIST pending)
        list(APPEND pending ${CMAKE_MATCH_1})
      endif()
    endforeach()
  endwhile()
  list(SORT found)
  set(${out} ${found} PARENT_SCOPE)
endfunction()

# tessera_public_name(OUT HEADER): tessera/training/step.h of apps/training/step.h.
function(tessera_public_name out header)
  string(REGEX REPLACE "^apps/" "" name ${header})
  set(${out} tessera/${name} PARENT_SCOPE)
endfunction()

# tessera_write_umbrellas(FOLDER PART...): FOLDER/tessera/PART.h.
function(tessera_write_umbrellas folder)
  foreach(part IN LISTS ARGN)
    tessera_public_name(name ${tessera_umbrella_${part}})
    file(CONFIGURE OUTPUT ${folder}/tessera/${part}.h CONTENT "#pragma once\n#include <${name}>\n")
  endforeach()
endfunction()

# tessera_forward_headers(SOURCE FOLDER PART...): headers in FOLDER by which the tree itself is used under the names
# of the installed package, by add_subdirectory().
function(tessera_forward_headers source folder)
  tessera_public_headers(headers ${source} ${ARGN})
  foreach(header IN LISTS headers)
    tessera_public_name(name ${header})
    file(CONFIGURE OUTPUT ${folder}/${name} CONTENT "#pragma once\n#include \"${header}\"\n")
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${source}/${header})
  endforeach()
  tessera_write_umbrellas(${folder} ${ARGN})
endfunction()

# tessera_install_headers(SOURCE FOLDER PART...): copies in FOLDER that include each other by their public names.
function(tessera_install_headers source folder)
  tessera_public_headers(headers ${source} ${ARGN})
  foreach(header IN LISTS headers)
    tessera_public_name(name ${header})
    file(READ ${source}/${header} text)
    string(REGEX REPLACE "${tessera_include_line}" "#include <tessera/\\1>" text "${text}")
    string(REPLACE "<tessera/apps/" "<tessera/" text "${text}")
    file(WRITE ${folder}/${name} "${text}")
  endforeach()
  tessera_write_umbrellas(${folder} ${ARGN})
endfunction()

# cmake -DFOLDER=... -P publicHeaders.cmake: the installed headers of all parts, for the reference.
if(CMAKE_SCRIPT_MODE_FILE STREQUAL CMAKE_CURRENT_LIST_FILE)
  get_filename_component(source ${CMAKE_CURRENT_LIST_DIR} DIRECTORY)
  tessera_install_headers(${source} ${FOLDER} engine check models data training inspector)
endif()
