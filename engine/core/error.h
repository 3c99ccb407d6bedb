#pragma once

// Every error of the library is an Error. Its message names the op or file, what came, what was wanted, and
// where it helps a hint: "linear: input [32, 65, 192] has 192 columns, weight [384, 256] takes 256".

#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace tessera {

class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Throws Error with the parts written one after another.
template <class... Parts> [[noreturn]] void fail(const Parts&... parts) {
  std::ostringstream text;
  (text << ... << parts);
  throw Error(text.str());
}

/// Throws Error with the parts unless `holds`.
template <class... Parts> void check(bool holds, const Parts&... parts) {
  if (!holds) [[unlikely]]
    fail(parts...);
}

/// The entry of `known` with the smallest edit distance from `given`; "" if none is within two edits or a
/// third of its letters.
std::string nearest(std::string_view given, const std::vector<std::string>& known);

/// "; did you mean 'sl-vit'?" for the nearest of `known`, or "" where none is near.
std::string did_you_mean(std::string_view given, const std::vector<std::string>& known);

}  // namespace tessera
