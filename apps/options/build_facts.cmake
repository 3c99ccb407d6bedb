# Writes the header of what --version says: OUTPUT, for the tree SOURCE. It stays untouched where nothing changed.
set(commit unknown)
find_package(Git QUIET)
if(GIT_FOUND)
  execute_process(COMMAND ${GIT_EXECUTABLE} -C "${SOURCE}" describe --always --dirty --abbrev=10 --exclude=*
                  OUTPUT_VARIABLE found OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  if(found)
    set(commit "${found}")
  endif()
endif()
file(CONFIGURE OUTPUT "${OUTPUT}" CONTENT "#pragma once

#define TESSERA_COMMIT \"${commit}\"
#define TESSERA_COMPILER \"${COMPILER}\"
#define TESSERA_FOUND \"${FOUND}\"
")
