# Script: makes of FOLDER/KIND.joined.o, all kernels of a kind, FOLDER/KIND.o whose symbols begin with the kind's name,
# and FOLDER/jumps.S with the kernels' own names (kernelVariants.cmake says why).
cmake_minimum_required(VERSION 3.22)

string(REPLACE "," ";" KINDS "${KINDS}")

# Symbols of a joined object that others may call: functions that are no inline ones (g), and the weak ones that
# TESSERA_FOR_FLOATS makes: members of ...Kernels<Cpu>, and those of gemm.h and of activations. One that is missing here
# does not link.
set(members "_ZN7tessera[0-9]+[A-Za-z0-9]+KernelsINS_3CpuEE")
set(functions "_ZN7tessera[0-9]+((parallel_|load_)?gemm|activate(_backward)?)I")

# run(VARIABLE COMMAND...): the command's output; the build ends where it fails.
function(run variable)
  execute_process(COMMAND ${ARGN} OUTPUT_VARIABLE output RESULT_VARIABLE status)
  if(status)
    message(FATAL_ERROR "${ARGN}: ${status}")
  endif()
  set(${variable} "${output}" PARENT_SCOPE)
endfunction()

# The lines of objdump's table of symbols that are defined and not local: address, flags, section, size, name.
function(symbols_of object variable)
  run(table ${OBJDUMP} -t ${object})
  string(REGEX MATCHALL "[0-9a-f]+ [gw!u ][w ][^\n]+" lines "${table}")
  list(FILTER lines EXCLUDE REGEX "\\*UND\\*")
  set(${variable} "${lines}" PARENT_SCOPE)
endfunction()

function(name_of line variable)
  string(REGEX REPLACE ".*[ \t](\\.hidden )?([^ \t]+)$" "\\2" name "${line}")
  set(${variable} ${name} PARENT_SCOPE)
endfunction()

list(GET KINDS 0 first)
symbols_of(${FOLDER}/${first}.joined.o lines)
set(kernels)
foreach(line ${lines})
  name_of("${line}" name)
  if(line MATCHES " F \\.text" AND (line MATCHES "^[0-9a-f]+ g" OR name MATCHES "^(${members}|${functions})"))
    list(APPEND kernels ${name})
  endif()
endforeach()
list(SORT kernels)
list(REMOVE_DUPLICATES kernels)

foreach(kind ${KINDS})
  symbols_of(${FOLDER}/${kind}.joined.o lines)
  # What inline functions and classes keep between calls is one for the whole program, and so stays as it is.
  set(kept ${kernels})
  foreach(line ${lines})
    if(line MATCHES "^[0-9a-f]+ [ wu!].* [O ] \\.(bss|data|tbss|tdata)" AND NOT line MATCHES "data\\.rel\\.ro")
      name_of("${line}" name)
      list(APPEND kept ${name})
    endif()
  endforeach()
  set(renamed)
  foreach(kernel ${kernels})
    string(APPEND renamed "${kernel} ${kind}_${kernel}\n")
  endforeach()
  list(JOIN kept "\n" kept)
  file(WRITE ${FOLDER}/${kind}.kept "${kept}\n")
  file(WRITE ${FOLDER}/${kind}.renamed "${renamed}")
  set(file ${FOLDER}/${kind})
  run(nothing ${OBJCOPY} --keep-global-symbols=${file}.kept ${file}.joined.o ${file}.local.o)
  run(nothing ${OBJCOPY} --redefine-syms=${file}.renamed ${file}.local.o ${file}.o)
endforeach()

list(LENGTH kernels count)
set(text "# Made by separateKinds.cmake.\n")
# The table of each kind, and the one in use, which is the first kind's until the program has chosen.
foreach(table ${KINDS} chosen)
  if(table STREQUAL chosen)
    string(APPEND text ".data\n")
    set(kind ${first})
  else()
    string(APPEND text ".section .data.rel.ro,\"aw\"\n")
    set(kind ${table})
  endif()
  string(APPEND text ".p2align 3\n.globl tessera_kernels_${table}\n.hidden tessera_kernels_${table}\n"
         "tessera_kernels_${table}:\n")
  foreach(kernel ${kernels})
    string(APPEND text "  .quad ${kind}_${kernel}\n")
  endforeach()
endforeach()
string(APPEND text ".section .rodata\n.p2align 3\n.globl tessera_kernel_count\n.hidden tessera_kernel_count\n"
       "tessera_kernel_count: .quad ${count}\n.text\n")
# Weak, so that a test may link a kernel of its own in their place (tests/mutation).
set(place 0)
foreach(kernel ${kernels})
  string(APPEND text ".p2align 4\n.weak ${kernel}\n.type ${kernel}, @function\n${kernel}:\n  endbr64\n"
         "  jmp *tessera_kernels_chosen+${place}(%rip)\n.size ${kernel}, .-${kernel}\n")
  math(EXPR place "${place} + 8")
endforeach()
string(APPEND text ".section .note.GNU-stack,\"\",@progbits\n")
file(WRITE ${FOLDER}/jumps.S "${text}")
