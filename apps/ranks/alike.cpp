#include "apps/ranks/alike.h"

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <system_error>

#include "engine/core/error.h"
#include "engine/cpu/processor.h"
#include "engine/io/checksum.h"
#include "engine/io/file.h"

namespace tessera {

namespace {

constexpr int64_t looked_at = 64;  // images of a split of files

std::string checksum_of(const std::string& bytes) {
  Checksum sum;
  sum.add(bytes.data(), bytes.size());
  return sum.text();
}

// The name of an image, and the bytes of its file where it has one of its own.
void add_name(Checksum& sum, const Split& split, int64_t i) {
  const std::string name = split.name(i);
  sum.add(name.c_str(), name.size() + 1);
  std::error_code none;
  const uint64_t bytes = std::filesystem::file_size(split.source(i), none);
  sum.add(&bytes, sizeof bytes);
}

void add_split(Checksum& sum, const Split& split, const Shape& shape) {
  const bool in_memory = dynamic_cast<const StoredSplit*>(&split) != nullptr;
  const int64_t images = split.size();
  sum.add(&images, sizeof images);
  for (int64_t i = 0; i < images; ++i) {
    const int64_t label = split.label(i);
    sum.add(&label, sizeof label);
    if (!in_memory) add_name(sum, split, i);
  }
  Image image, mask;
  std::vector<float> latent(split.has_latents() ? static_cast<size_t>(shape.elements()) : 0);
  const int64_t chosen = in_memory ? images : std::min(images, looked_at);
  for (int64_t k = 0; k < chosen; ++k) {
    if (split.has_latents()) {
      split.latent(k * images / chosen, Random(0), latent.data());
      sum.add(latent.data(), latent.size() * sizeof(float));
      continue;
    }
    split.image(k * images / chosen, image);
    sum.add(image.pixels.data(), image.pixels.size());
    if (!split.has_masks()) continue;
    split.mask(k * images / chosen, mask);
    sum.add(mask.pixels.data(), mask.pixels.size());
  }
}

}  // namespace

void expect_alike(Ranks& ranks, const std::string& what, const std::string& text) {
  const std::vector<std::string> digests = gather(ranks, checksum_of(text));
  for (size_t other = 1; other < digests.size(); ++other)
    check(digests[other] == digests[0], "ranks: rank ", other, " has another ", what, " than rank 0; give ",
          "every machine the same");
}

void expect_alike(Ranks& ranks, const Computing& computing) {
  expect_alike(ranks, "program", read_text("/proc/self/exe"));
  expect_alike(ranks, "kind of processor", std::to_string(static_cast<int>(processor())));
  expect_alike(ranks, "device or precision",
               std::string(name(computing.device)) + " " + std::string(name(computing.precision)));
}

std::string digest_of(const Dataset& dataset) {
  Checksum sum;
  for (const std::string& name : dataset.class_names) sum.add(name.c_str(), name.size() + 1);
  add_split(sum, *dataset.train, dataset.image_shape);
  add_split(sum, *dataset.validation, dataset.image_shape);
  return sum.text();
}

std::string digest_of(const TokenLabels& labels, int64_t images) {
  Checksum sum;
  std::vector<float> map(static_cast<size_t>(labels.shape().elements()));
  const int64_t chosen = std::min(images, looked_at);
  for (int64_t k = 0; k < chosen; ++k) {
    labels.read(k * images / chosen, map.data());
    sum.add(map.data(), map.size() * sizeof(float));
  }
  return sum.text();
}

std::string common_part_of(const TrainConfig& config) {
  Json common = to_json(config);
  for (const char* key : {"about", "init"}) common.erase(key);
  for (const char* key : {"dir", "token_labels", "cache_mb", "on_device"}) common["data"].erase(key);
  return common.dump();
}

std::string digest_of(const Model& model) {
  Checksum sum;
  for (const Parameter& p : model.parameters) {
    const Tensor value = p.value.to(Device::cpu);
    sum.add(p.name.data(), p.name.size());
    sum.add(value.raw(), value.bytes());
  }
  return sum.text();
}

}  // namespace tessera
