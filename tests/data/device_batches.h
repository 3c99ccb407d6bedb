#pragma once

// Data sets and loaders for tests that compare a GPU's batches, or the emulator's, with the CPU's.

#include <cstring>

#include "data/loader.h"
#include "tests/cuda.h"
#include "tests/data/files.h"

namespace tessera {

inline constexpr int64_t classes = 5;

// Random images, among them some of one colour, of few values, and of a gradient.
inline std::vector<uint8_t> pixels_of(int64_t pictures, int height, int width, uint64_t seed) {
  const int64_t bytes = int64_t{3} * height * width;
  std::vector<uint8_t> pixels = random_bytes(pictures * bytes, static_cast<uint64_t>(height * width) + seed);
  for (int64_t i = 0; i < pictures; ++i)
    for (int64_t p = 0; p < bytes; ++p) {
      uint8_t& v = pixels[static_cast<size_t>(i * bytes + p)];
      if (i % 5 == 1) v = static_cast<uint8_t>(40 * i + p % 3);
      if (i % 5 == 2) v = static_cast<uint8_t>(v % 7 + 100);
      if (i % 5 == 3) v = static_cast<uint8_t>(p * 255 / bytes);
    }
  return pixels;
}

inline Dataset pictures(int64_t count, int height, int width, uint64_t seed = 0) {
  std::vector<int32_t> labels;
  for (int64_t i = 0; i < count; ++i) labels.push_back(static_cast<int32_t>(i * 7 % classes));
  Dataset dataset;
  dataset.image_shape = {3, height, width};
  dataset.class_names.resize(classes);
  dataset.train =
      std::make_shared<StoredSplit>(height, width, 3, pixels_of(count, height, width, seed), labels, "test");
  return dataset;
}

inline LoaderOptions delivered(LoaderOptions options, DType dtype = DType::f32, bool resident = true) {
  options.delivery = {.device = Device::cuda, .dtype = dtype, .resident = resident, .classes = classes};
  return options;
}

inline bool same_bits(const Tensor& a, const Tensor& b) {
  return a.shape() == b.shape() && a.dtype() == b.dtype() && std::memcmp(a.raw(), b.raw(), a.bytes()) == 0;
}

// lam at the own label, 1 - lam at the other. [B, K]
inline Tensor shares_of(const Batch& batch) {
  const Tensor shares = Tensor::zeros({batch.labels.dim(0), classes});
  const auto add = [&](const Tensor& labels, double share) {
    for (int64_t i = 0; i < labels.dim(0); ++i)
      shares.data<float>()[i * classes + labels.data<int64_t>()[i]] += static_cast<float>(share);
  };
  const bool mixed = batch.other_labels.defined();
  add(batch.labels, mixed ? batch.lam : 1);
  if (mixed) add(batch.other_labels, 1 - batch.lam);
  return shares;
}

inline void expect_same(const Batch& host, const Batch& made, DType dtype) {
  CHECK(same_bits(made.images.to(Device::cpu), host.images.to(dtype)));
  CHECK(made.labels.integers() == host.labels.integers());
  CHECK(made.host_labels.integers() == host.labels.integers());
  REQUIRE(made.other_labels.defined() == host.other_labels.defined());
  if (host.other_labels.defined()) CHECK(made.other_labels.integers() == host.other_labels.integers());
  CHECK(made.lam == host.lam);
  CHECK(made.indices == host.indices);
  CHECK(same_bits(made.shares.to(Device::cpu), shares_of(host).to(dtype)));
}

// Compares both loaders from a batch of an epoch on.
inline void expect_same(Loader& host, Loader& made, DType dtype, int64_t epoch, int64_t step) {
  host.start(epoch, step);
  made.start(epoch, step);
  for (; const Batch* wanted = host.next(); ++step) {
    CAPTURE(epoch);
    CAPTURE(step);
    const Batch* batch = made.next();
    REQUIRE(batch);
    expect_same(*wanted, *batch, dtype);
  }
  CHECK(made.next() == nullptr);
}

inline void expect_same(const Dataset& dataset, const Pipeline& pipeline, const LoaderOptions& options) {
  for (const bool resident : {true, false})
    for (const DType dtype : {DType::f32, DType::bf16}) {
      CAPTURE(resident);
      CAPTURE(dtype);
      Loader host(dataset.train, pipeline, options),
          made(dataset.train, pipeline, delivered(options, dtype, resident));
      CHECK(made.resident() == resident);
      for (int64_t epoch = 0; epoch < 2; ++epoch) expect_same(host, made, dtype, epoch, 0);
      if (host.batches() > 1) expect_same(host, made, dtype, 3, host.batches() / 2);
    }
}

inline const std::pair<int, int> sizes[] = {{32, 32}, {33, 31}, {5, 7}, {1, 1}, {2, 9}, {64, 64}};

}  // namespace tessera
