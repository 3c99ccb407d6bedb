#pragma once

#include <string>

#include "apps/training/ranks.h"
#include "data/dataset.h"

namespace tessera {

/// Fails on every rank, naming the first rank that differs, unless all give the same text.
void expect_alike(Ranks& ranks, const std::string& what, const std::string& text);

/// A checksum of this program's file.
std::string digest_of_program();

/// A checksum of the names of the classes, all labels, and the pixels of 64 images of each split.
std::string digest_of(const Dataset& dataset);

}  // namespace tessera
