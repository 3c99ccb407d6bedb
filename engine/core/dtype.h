#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <iosfwd>
#include <string_view>
#include <type_traits>

#include "engine/core/device.h"

namespace tessera {

/// The type of a tensor's elements: floating types, and i64, u8 for labels and pixels.
enum class DType : uint8_t { f32, f64, bf16, i64, u8 };

/// bfloat16: the upper half of a float. Stored only; arithmetic runs in float.
struct bf16 {
  uint16_t bits;

  bf16() = default;
  /// Rounds to nearest, halves to even; a NaN stays a NaN.
  TESSERA_HD explicit bf16(float value) {
#ifdef __CUDA_ARCH__  // the GPU has an instruction for it
    asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(bits) : "f"(value));
#else
    const uint32_t u = std::bit_cast<uint32_t>(value);
    const uint32_t rounded = value != value ? u | 0x400000u : u + (0x7fffu + ((u >> 16) & 1u));
    bits = static_cast<uint16_t>(rounded >> 16);
#endif
  }
  TESSERA_HD operator float() const { return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16); }
};

/// The type that values of T are computed and summed in: float for float and bf16, double for double.
template <class T> using Wide = std::conditional_t<std::is_same_v<T, double>, double, float>;

/// The DType of a C++ type.
template <class T>
inline constexpr DType dtype_of = [] {
  if constexpr (std::is_same_v<T, float>)
    return DType::f32;
  else if constexpr (std::is_same_v<T, double>)
    return DType::f64;
  else if constexpr (std::is_same_v<T, bf16>)
    return DType::bf16;
  else if constexpr (std::is_same_v<T, int64_t>)
    return DType::i64;
  else {
    static_assert(std::is_same_v<T, uint8_t>, "tensors hold float, double, bf16, int64_t or uint8_t");
    return DType::u8;
  }
}();

size_t size_of(DType dtype);               ///< bytes of an element
std::string_view name(DType dtype);        ///< "f32"
DType parse_dtype(std::string_view text);  ///< the inverse of name(); fails on any other text
inline bool is_float(DType dtype) { return dtype <= DType::bf16; }
/// The DType of Wide<T>, given that of a floating T.
inline DType wide(DType dtype) { return dtype == DType::f64 ? DType::f64 : DType::f32; }
std::ostream& operator<<(std::ostream& out, DType dtype);

}  // namespace tessera
