# One program for every x86-64: the CPU kernels are compiled once for each kind of processor, and the program picks the
# kind that it runs on when it starts (engine/cpu/processor.h).
#
# No kernel's source knows of this. All its symbols are kept inside its kind, because inline functions and vtables that
# two kinds define alike must not be merged by the linker: the copy that it keeps might use instructions that the
# processor lacks. The kernels' own names become jumps through a table, which the start of the program fills.

# tessera_kernel_variants(TARGET SOURCE...): adds these sources, in all kinds, to the target.
function(tessera_kernel_variants target)
  find_program(TESSERA_LD NAMES ld.bfd REQUIRED)
  foreach(tool NM OBJCOPY OBJDUMP)
    if(NOT CMAKE_${tool})
      message(FATAL_ERROR "TESSERA_NATIVE=OFF needs ${tool} of binutils; install it, or build with -DTESSERA_NATIVE=ON")
    endif()
  endforeach()
  set(avx2 -mavx2 -mfma -mbmi -mbmi2)
  set(avx512 ${avx2} -mavx512f -mavx512bw -mavx512vl -mavx512dq -mavx512cd -mprefer-vector-width=512)
  set(any)
  set(kinds any avx2 avx512)
  set(folder ${CMAKE_CURRENT_BINARY_DIR}/kernels)
  set(made ${folder}/jumps.S)
  set(joins)
  set(depends)
  foreach(kind ${kinds})
    set(objects ${target}_${kind})
    add_library(${objects} OBJECT ${ARGN})
    target_compile_features(${objects} PRIVATE cxx_std_20)
    # A unique symbol cannot be made local to its kind.
    target_compile_options(${objects} PRIVATE ${${kind}} $<$<CXX_COMPILER_ID:GNU>:-fno-gnu-unique>)
    target_include_directories(${objects} PRIVATE $<TARGET_PROPERTY:${target},INCLUDE_DIRECTORIES>)
    target_compile_definitions(${objects} PRIVATE $<TARGET_PROPERTY:${target},COMPILE_DEFINITIONS>)
    target_link_libraries(${objects} PRIVATE TBB::tbb nlohmann_json::nlohmann_json)
    list(APPEND made ${folder}/${kind}.o)
    list(APPEND joins COMMAND ${TESSERA_LD} -r --force-group-allocation -o ${folder}/${kind}.joined.o
         $<TARGET_OBJECTS:${objects}>)
    list(APPEND depends $<TARGET_OBJECTS:${objects}>)
  endforeach()
  file(MAKE_DIRECTORY ${folder})
  add_custom_command(
    OUTPUT ${made}
    ${joins}
    COMMAND ${CMAKE_COMMAND} -DFOLDER=${folder} -DKINDS=any,avx2,avx512 -DOBJDUMP=${CMAKE_OBJDUMP}
            -DOBJCOPY=${CMAKE_OBJCOPY} -P ${CMAKE_CURRENT_SOURCE_DIR}/engine/cpu/separateKinds.cmake
    DEPENDS ${depends} ${CMAKE_CURRENT_SOURCE_DIR}/engine/cpu/separateKinds.cmake
    COMMENT "Keeping the kernels of each kind of processor apart" COMMAND_EXPAND_LISTS VERBATIM)
  target_sources(${target} PRIVATE ${made})
  target_compile_definitions(${target} PRIVATE TESSERA_KERNEL_VARIANTS)
endfunction()
