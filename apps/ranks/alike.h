#pragma once

#include <string>

#include "apps/training/precision.h"
#include "apps/training/ranks.h"
#include "data/dataset.h"
#include "models/model.h"

namespace tessera {

/// Fails on every rank, naming the first rank that differs, unless all give the same text.
void expect_alike(Ranks& ranks, const std::string& what, const std::string& text);

/// The same for what every command must have alike: this program's file, the kind of processor, whose kernels
/// may round otherwise, and the device and precision.
void expect_alike(Ranks& ranks, const Computing& computing);

/// A checksum of the names of the classes and all labels, and of pictures: all of those that are kept in
/// memory; of those in files all names and sizes of files, and the pixels of 64 of each split.
std::string digest_of(const Dataset& dataset);

/// A checksum of all parameters.
std::string digest_of(const Model& model);

}  // namespace tessera
