#pragma once

#include <string>

#include "apps/training/config.h"
#include "apps/training/precision.h"
#include "apps/training/ranks.h"
#include "data/dataset.h"
#include "data/token_labels.h"
#include "models/model.h"

namespace tessera {

/// Fails on every rank, naming the first rank that differs, unless all give the same text.
void expect_alike(Ranks& ranks, const std::string& what, const std::string& text);

/// The same for what every command must have alike: this program's file, the kind of processor, whose kernels
/// may round otherwise, and the device and precision.
void expect_alike(Ranks& ranks, const Computing& computing);

/// A checksum of the names of the classes and all labels, and of pictures: all of those that are kept in
/// memory; of those in files all names and sizes of files, and the pixels of 64 of each split; masks with
/// them.
std::string digest_of(const Dataset& dataset);

/// A checksum of a teacher's maps of 64 of so many images.
std::string digest_of(const TokenLabels& labels, int64_t images);

/// The config as text. Ranks may differ in where their machines keep files and in what these keep in memory
/// alone, as each of them decides by itself when the run saves, logs and ends. `init` is read by the first.
std::string common_part_of(const TrainConfig& config);

/// A checksum of all parameters.
std::string digest_of(const Model& model);

}  // namespace tessera
