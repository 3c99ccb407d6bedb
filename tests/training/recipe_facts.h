#pragma once

#include <doctest/doctest.h>

#include <map>
#include <string>
#include <utility>

#include "apps/training/config.h"

namespace tessera {

// What a model needs to know of a recipe's data set; none is opened.
inline Dataset facts_of(const DataConfig& data) {
  static const std::map<std::string, std::pair<int64_t, size_t>> known{
      {"cifar10", {32, 10}},        {"cifar100", {32, 100}},   {"svhn", {32, 10}},
      {"tiny-imagenet", {64, 200}}, {"imagenet", {224, 1000}}, {"imagenet-100", {224, 100}},
      {"shapes", {32, 10}},         {"shapes-seg", {64, 11}},  {"tiles", {64, 8}},
      {"ade20k", {512, 150}},       {"latents", {32, 1000}}};
  REQUIRE(known.contains(data.name));
  const auto [size, classes] = known.at(data.name);
  Dataset dataset;
  dataset.name = data.name;
  const int64_t side = data.image_size > 0 ? data.image_size : size;
  const bool latents = data.name == "latents";
  dataset.image_shape = {latents ? 4 : 3, side, side};
  dataset.latent_scale = latents ? data.latent_scale : 0;
  dataset.class_names.resize(classes);
  return dataset;
}

}  // namespace tessera
