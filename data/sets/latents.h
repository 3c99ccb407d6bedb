#pragma once

#include "data/sets/entry.h"

namespace tessera {

/// The pictures of a data set as an autoencoder's encoder saw them (Rombach et al., 2022), made elsewhere.
/// `path` is a folder with train.safetensors, or a folder `train` of several such files, which are read in
/// the order of their names; or one file. A file holds
///
///   latents  [N, C, H, W] F32, F16 or BF16; or in their place
///   means, logvars  both [N, C, H, W]: each time a latent is read, it is drawn anew from the normal
///       distribution with this mean and log variance, which is cut to -30 ... 20
///   labels   [N] I64, I32 or U8: classes from 0
///
/// A network is given latent_scale times these values. `val`, `valid`, `validation` or `test`, likewise a
/// file or a folder, is the validation split; without one, a share of the training latents is held out, drawn
/// by the seed. classes.txt in the folder names the classes, a line each; otherwise they are numbers.
///
/// Only headers and labels are kept in memory; a latent is read from its file when it is asked for. Fails for
/// missing tensors, other shapes or types, files that differ in C, H or W, latents that are not square, and
/// labels that are negative or no class of classes.txt. A latent that is not finite is refused when it is
/// read.
Dataset open_latents(const std::filesystem::path& path, const DatasetOptions& options);

/// Whether the folder holds the training files of such a data set.
bool looks_like_latents(const std::filesystem::path& folder);

DatasetEntry latents_entry();

}  // namespace tessera
