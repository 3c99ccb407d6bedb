#include "apps/training/saved_state.h"

#include <fmt/core.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "apps/training/number_watch.h"
#include "apps/training/run_identity.h"
#include "engine/core/error.h"
#include "engine/core/printable.h"

namespace tessera {

namespace {

constexpr const char* format = "tessera state 2";
constexpr const char* older_format = "tessera state 1";  // without checksum and config

}  // namespace

const char* state_format() { return format; }

const std::string& metadata_of(const TensorFile& file, const char* key) {
  const auto found = file.metadata.find(key);
  check(found != file.metadata.end(), file.where, ": is not the state of a run: its metadata has no '", key,
        "'");
  return found->second;
}

TensorFile read_state(const std::filesystem::path& path) {
  TensorFile file = read_safetensors(path);
  const std::string& given = metadata_of(file, "format");
  check(given == format || given == older_format, file.where, ": has the format '", given,
        "', this program reads '", format, "'");
  check(file.checked || given == older_format, file.where,
        ": has no checksum, so it was not written by this program as it is");
  if (const auto bad = first_not_finite(file.tensors)) fail(file.where, ": ", *bad);
  return file;
}

std::optional<TensorFile> read_saved_state(RunFolder& folder) {
  const bool is_there = std::filesystem::exists(folder.state());
  if (!is_there && !std::filesystem::exists(folder.previous_state())) return std::nullopt;
  try {
    return read_state(folder.state());
  } catch (const Error& error) {
    if (!std::filesystem::exists(folder.previous_state())) throw;
    fmt::print(stderr, "warning: {}\n", printable(error.what()));
  }
  TensorFile file = read_state(folder.previous_state());
  fmt::print(stderr, "warning: going on from the state before it, {}\n", printable(file.where, false));
  folder.event("fell_back", {{"state", folder.previous_state().filename().string()}});
  return file;
}

std::optional<Precision> saved_precision(const TensorFile& file) {
  const auto found = file.metadata.find("precision");
  if (found == file.metadata.end()) return std::nullopt;
  for (const Precision precision : {Precision::f32, Precision::tf32, Precision::bf16})
    if (name(precision) == found->second) return precision;
  fail(file.where, ": precision: '", found->second, "' is not one of f32, tf32, bf16");
}

std::vector<std::string> differences_from(const TensorFile& file, const TrainConfig& config) {
  const std::string where = file.where + ": config";
  const Json saved = identity_of(read_train_config(parse_json(metadata_of(file, "config"), where), where));
  return differences(saved, identity_of(config));
}

void expect_same_run(const TensorFile& file, const TrainConfig& config,
                     const std::vector<std::string>& changed) {
  std::string text;
  for (const std::string& difference : differences_from(file, config)) {
    const std::string key = difference.substr(0, difference.find(' '));
    if (std::ranges::find(changed, key) == changed.end()) text += "\n" + difference;
  }
  check(
      text.empty(), file.where, ": was saved by another run, or config.json has been edited:", text,
      "\nPut config.json back as it was, give --set for what --resume may change (epochs, optimizer.lr), or "
      "begin anew with --recipe config.json --out NEW");
}

}  // namespace tessera
