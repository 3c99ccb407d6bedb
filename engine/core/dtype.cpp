#include "engine/core/dtype.h"

#include <array>
#include <ostream>

#include "engine/core/error.h"

namespace tessera {

namespace {

struct Known {
  std::string_view name;
  size_t bytes;
};
constexpr std::array<Known, 5> known{{{"f32", 4}, {"f64", 8}, {"bf16", 2}, {"i64", 8}, {"u8", 1}}};

}  // namespace

size_t size_of(DType dtype) { return known[static_cast<size_t>(dtype)].bytes; }

std::string_view name(DType dtype) { return known[static_cast<size_t>(dtype)].name; }

DType parse_dtype(std::string_view text) {
  for (size_t i = 0; i < known.size(); ++i)
    if (known[i].name == text) return static_cast<DType>(i);
  fail("dtype: unknown '", text, "'; there are f32, f64, bf16, i64, u8");
}

std::ostream& operator<<(std::ostream& out, DType dtype) { return out << name(dtype); }

}  // namespace tessera
