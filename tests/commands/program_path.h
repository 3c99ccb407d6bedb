#pragma once

#include <cstdlib>
#include <string>

namespace tessera {

// The program under test: that of this build, or the one that the variable TESSERA_PROGRAM names.
inline std::string program_path() {
  const char* other = std::getenv("TESSERA_PROGRAM");
  return other ? other : TESSERA_BINARY;
}

}  // namespace tessera
