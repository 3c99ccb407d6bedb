#include "engine/core/dtype.h"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>

#include "engine/core/device.h"
#include "engine/core/error.h"

using namespace tessera;

TEST_CASE("dtype: names and sizes") {
  for (const DType dtype : {DType::f32, DType::f64, DType::bf16, DType::i64, DType::u8})
    CHECK(parse_dtype(name(dtype)) == dtype);
  CHECK(size_of(DType::f32) == 4);
  CHECK(size_of(DType::f64) == 8);
  CHECK(size_of(DType::bf16) == 2);
  CHECK(size_of(DType::i64) == 8);
  CHECK(size_of(DType::u8) == 1);
  CHECK(is_float(DType::bf16));
  CHECK(!is_float(DType::i64));
  CHECK(dtype_of<bf16> == DType::bf16);
  CHECK(std::is_same_v<Wide<bf16>, float>);
  CHECK(std::is_same_v<Wide<double>, double>);
  CHECK_THROWS_WITH_AS(parse_dtype("f16"), "dtype: unknown 'f16'; there are f32, f64, bf16, i64, u8", Error);
}

TEST_CASE("device: names") {
  CHECK(parse_device("cpu") == Device::cpu);
  CHECK(name(parse_device("cuda")) == "cuda");
  CHECK_THROWS_WITH_AS(parse_device("gpu"), "device: unknown 'gpu'; there are cpu and cuda", Error);
}

TEST_CASE("bf16: rounds to nearest, halves to even") {
  const auto rounded = [](float value) { return static_cast<float>(bf16(value)); };
  const float step = 0x1p-7f;  // between neighbours in [1, 2)
  CHECK(rounded(1.0f) == 1.0f);
  CHECK(rounded(1.0f + 0.49f * step) == 1.0f);
  CHECK(rounded(1.0f + 0.51f * step) == 1.0f + step);
  CHECK(rounded(1.0f + 0.5f * step) == 1.0f);             // down, to even
  CHECK(rounded(1.0f + 1.5f * step) == 1.0f + 2 * step);  // up, to even
  CHECK(rounded(-1.0f - 1.5f * step) == -1.0f - 2 * step);
  CHECK(rounded(2.0f - 0.25f * step) == 2.0f);  // carries into the exponent
  CHECK(rounded(0x1p-133f) == 0x1p-133f);       // the least of all
}

TEST_CASE("bf16: infinities, NaN and signed zero survive") {
  const float inf = std::numeric_limits<float>::infinity();
  CHECK(static_cast<float>(bf16(inf)) == inf);
  CHECK(static_cast<float>(bf16(-inf)) == -inf);
  CHECK(static_cast<float>(bf16(std::numeric_limits<float>::max())) == inf);
  CHECK(std::signbit(static_cast<float>(bf16(-0.0f))));
  for (const uint32_t bits : {0x7fc00000u, 0x7f800001u, 0x7fffffffu, 0xffffffffu})
    CHECK(std::isnan(static_cast<float>(bf16(std::bit_cast<float>(bits)))));
}

TEST_CASE("bf16: every value but NaN is its own rounding") {
  int changed = 0;
  for (uint32_t bits = 0; bits <= 0xffff; ++bits) {
    bf16 value;
    value.bits = static_cast<uint16_t>(bits);
    if (!std::isnan(static_cast<float>(value))) changed += bf16(static_cast<float>(value)).bits != value.bits;
  }
  CHECK(changed == 0);
}
