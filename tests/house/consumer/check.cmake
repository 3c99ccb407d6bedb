# Installs BUILD into an empty prefix, then builds and runs this folder's programs against it. What they trained
# must be a checkpoint that the installed `tessera eval` judges as they do.
set(work ${BUILD}/tests/package)
set(prefix ${work}/prefix)
file(REMOVE_RECURSE ${work})
macro(step)
  execute_process(COMMAND ${ARGV} COMMAND_ERROR_IS_FATAL ANY)
endmacro()

# The library and its headers, without the sources' own paths.
step(${CMAKE_COMMAND} --install ${BUILD} --prefix ${prefix})
file(GLOB strays LIST_DIRECTORIES true RELATIVE ${prefix}/include ${prefix}/include/*)
if(NOT strays STREQUAL "tessera")
  message(FATAL_ERROR "Installed headers lie outside include/tessera: ${strays}")
endif()
foreach(folder IN ITEMS . lean)
  step(${CMAKE_COMMAND} -S ${CMAKE_CURRENT_LIST_DIR}/${folder} -B ${work}/build/${folder} -G ${GENERATOR}
       -DCMAKE_CXX_COMPILER=${COMPILER} -DCMAKE_PREFIX_PATH=${prefix})
  step(${CMAKE_COMMAND} --build ${work}/build/${folder})
endforeach()
step(${work}/build/gradient)
step(${work}/build/lean/lean)

# A page of a program's own tape, read back by the page's own scripts: the gradient is the one that it printed.
file(MAKE_DIRECTORY ${work}/own_tape)
execute_process(COMMAND ${work}/build/own_tape WORKING_DIRECTORY ${work}/own_tape
                OUTPUT_VARIABLE said COMMAND_ERROR_IS_FATAL ANY)
find_program(NODE NAMES node nodejs)
if(NODE)
  separate_arguments(numbers UNIX_COMMAND "${said}")
  step(${NODE} ${CMAKE_CURRENT_LIST_DIR}/../../inspector/check_gradient.js ${work}/own_tape/tape.html w ${numbers})
else()
  message("own_tape: its page was written; reading it back needs node")
endif()

# run(CHECKPOINT PROGRAM): in its own folder; `tessera eval` must print the numbers that the program printed.
function(run checkpoint program)
  file(MAKE_DIRECTORY ${work}/${program})
  execute_process(COMMAND ${work}/build/${program} WORKING_DIRECTORY ${work}/${program}
                  OUTPUT_VARIABLE said COMMAND_ERROR_IS_FATAL ANY)
  message("${program}: ${said}")
  execute_process(COMMAND ${prefix}/bin/tessera eval ${work}/${program}/${checkpoint} --dataset folder
                  --data ${work}/trainer/pictures OUTPUT_VARIABLE judged COMMAND_ERROR_IS_FATAL ANY)
  string(REGEX MATCH "top-1 [^\n]*loss [0-9.]+" numbers "${said}")
  string(FIND "${judged}" "${numbers}" found)
  if(numbers STREQUAL "" OR found EQUAL -1)
    message(FATAL_ERROR "${program} printed\n${said}, but tessera eval\n${judged}")
  endif()
endfunction()
if(EXISTS ${prefix}/bin/tessera)
  run(run trainer)
  run(own.safetensors own_loop)

  # What the program exports, a program of thirty lines reads, and predicts as `tessera predict` does.
  step(${prefix}/bin/tessera export ${work}/trainer/run --format safetensors --out ${work}/exported.safetensors)
  file(GLOB pictures ${work}/trainer/pictures/val/fine/*.bmp)
  list(GET pictures 0 picture)
  execute_process(COMMAND ${work}/build/predict ${work}/exported.safetensors ${picture} OUTPUT_VARIABLE said
                  COMMAND_ERROR_IS_FATAL ANY)
  execute_process(COMMAND ${prefix}/bin/tessera predict ${work}/trainer/run ${picture} OUTPUT_VARIABLE known
                  COMMAND_ERROR_IS_FATAL ANY)
  string(STRIP "${said}" said)
  string(FIND "${known}" "${said}" found)
  if(said STREQUAL "" OR found EQUAL -1)
    message(FATAL_ERROR "predict printed\n${said}, but tessera predict\n${known}")
  endif()
endif()
