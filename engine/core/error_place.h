#pragma once

#include <string>
#include <utility>

#include "engine/core/error.h"

namespace tessera {

/// Returns f(). An Error of f that does not name `where`, the file that f's input is from, is thrown again as
/// "where: ...".
template <class F> auto with_place(const std::string& where, F&& f) {
  try {
    return std::forward<F>(f)();
  } catch (const Error& error) {
    const std::string message = error.what();
    if (message.find(where) != std::string::npos) throw;
    fail(where, ": ", message);
  }
}

}  // namespace tessera
