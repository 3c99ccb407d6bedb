#pragma once

// The file from which a run goes on, state.safetensors: reading it and comparing it with the run.

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "apps/training/config.h"
#include "apps/training/precision.h"
#include "apps/training/run_folder.h"
#include "engine/io/safetensors.h"

namespace tessera {

// The format that is written, the value of "format" in the file's metadata.
const char* state_format();

// Reads a state. Fails for a damaged file, for another format, and for numbers that are not finite. A state
// of this version carries its checksum; one of the version before has none.
TensorFile read_state(const std::filesystem::path& path);

// The saved state of a run or, where that is damaged or gone, the one before it, with a word on stderr and in
// events.jsonl. Nothing where there is none yet.
std::optional<TensorFile> read_saved_state(RunFolder& folder);

// The precision that the run was computing in when it was saved. Nothing for a state that does not say, as
// those of the versions before do not.
std::optional<Precision> saved_precision(const TensorFile& file);

// An entry of the metadata. Fails where there is none.
const std::string& metadata_of(const TensorFile& file, const char* key);

// In what `config` is not the config that the state was saved under; see differences().
std::vector<std::string> differences_from(const TensorFile& file, const TrainConfig& config);

// Fails where `config` is not the config that the state was saved under, save for the keys `changed`.
void expect_same_run(const TensorFile& file, const TrainConfig& config,
                     const std::vector<std::string>& changed);

}  // namespace tessera
