#pragma once

#include <string>

#include "engine/core/error.h"

namespace tessera {

// The message of the error that f() throws, or "" if it throws none.
template <class F> std::string error_of(F&& f) {
  try {
    f();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

}  // namespace tessera
