#pragma once

#include <cstdint>

#include "engine/core/dtype.h"
#include "engine/core/error.h"

namespace tessera {

// Calls f.operator()<T>() with the C++ type T of `dtype`.
template <class F> decltype(auto) with_type(DType dtype, F&& f) {
  switch (dtype) {
    case DType::f32:
      return f.template operator()<float>();
    case DType::f64:
      return f.template operator()<double>();
    case DType::bf16:
      return f.template operator()<bf16>();
    case DType::i64:
      return f.template operator()<int64_t>();
    case DType::u8:
      return f.template operator()<uint8_t>();
  }
  fail("dtype: not one of the five");
}

// The value in another type; to bf16 it is rounded, to integers truncated.
template <class To, class From> TESSERA_HD To converted(From value) {
  if constexpr (std::is_same_v<To, bf16>)
    return bf16(static_cast<float>(value));
  else
    return static_cast<To>(value);
}

}  // namespace tessera
