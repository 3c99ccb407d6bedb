#pragma once

#include "data/sets/entry.h"

namespace tessera {

/// All data sets, in the order in which help texts list them.
const std::vector<DatasetEntry>& datasets();

std::vector<std::string> dataset_names();

/// The row of `name`. Fails for an unknown name and suggests a similar one.
const DatasetEntry& find_dataset(const std::string& name);

/// Whether this is the name of a data set of latents.
bool holds_latents(const std::string& name);

/// Fails if `options` ask for something that the data set does not have; the message gives the reason.
void check_options(const DatasetEntry& entry, const DatasetOptions& options);

/// Fails if a folder is given for a data set whose pictures are drawn. A run's config may hold one all the
/// same, so that open_dataset() takes it.
void check_folder(const std::string& name, const std::filesystem::path& dir);

/// What is known of a data set without its files: name, image_shape, latent_scale and the number of classes,
/// whose names are empty. Latents are those of 256 pixels. Fails for an unknown name, for options that the
/// set does not have, and for a set that is whatever its folder holds.
Dataset unopened_dataset(const std::string& name, const DatasetOptions& options = {});

/// Opens `name` from `dir`, which is the folder that its archive unpacks or the parent of that. Fails for an
/// unknown name, an option that the data set does not have, a missing folder and malformed files.
Dataset open_dataset(const std::string& name, const std::filesystem::path& dir,
                     const DatasetOptions& options = {});

}  // namespace tessera
