#include "apps/training/checkpoint.h"

#include "apps/training/run_identity.h"
#include "apps/training/saved_state.h"
#include "engine/core/error.h"
#include "engine/io/safetensors.h"
#include "tests/error_of.h"
#include "tests/training/small_run.h"

namespace fs = std::filesystem;
using namespace tessera;

namespace {

using Metadata = std::map<std::string, std::string>;

// A model's weights and what its checkpoint says of them, each of which can be made wrong.
struct Parts {
  Json model = small_vit;
  DataFacts data;
  NamedTensors weights;

  Parts() {
    model.update({{"image_size", 8}, {"num_classes", 3}});
    data.source.name = "shapes";
    data.class_names = {"a", "b", "c"};
    data.image_size = 8;
    data.normalisation = {{0, 0, 0}, {1, 1, 1}};
    weights = build(model).parameters.state();
  }
  Metadata metadata() const { return checkpoint_metadata(model, data, {{"epoch", 3}}); }
};

class Written {
 public:
  // The message of read_checkpoint on a file with this metadata, behind the file's name; "" where it reads
  // it.
  std::string refusal(const Metadata& metadata) const {
    write_safetensors(path_, parts.weights, metadata);
    return said();
  }
  std::string said() const {
    const std::string error = error_of([&] { read_checkpoint(path_, Device::cpu); });
    return error.starts_with(path_ + ": ") ? error.substr(path_.size() + 2) : error;
  }
  // The same without the key `name` of the metadata, or with another value.
  std::string without(const std::string& name) const {
    Metadata metadata = parts.metadata();
    metadata.erase(name);
    return refusal(metadata);
  }
  std::string with(const std::string& name, const std::string& value) const {
    Metadata metadata = parts.metadata();
    metadata[name] = value;
    return refusal(metadata);
  }
  // The file's checksum under a name that nobody knows, as if there were none.
  void lose_checksum() const {
    std::string bytes = bytes_of(path_);
    bytes.replace(bytes.find("\"xxh3\""), 6, "\"none\"");
    put(path_, bytes);
  }
  const std::string& path() const { return path_; }

  Parts parts;

 private:
  TemporaryFolder folder_;
  std::string path_ = folder_ / "x.safetensors";
};

// The checkpoint's facts about its data with this change.
std::string changed_facts(const Written& file, const Json& change) {
  Json facts = parse_json(file.parts.metadata().at("data"), "data");
  facts.merge_patch(change);
  return file.with("data", facts.dump());
}

}  // namespace

TEST_CASE("a checkpoint is read back, and is the best or the last of its folder") {
  const TemporaryFolder folder;
  Parts parts;
  CHECK(
      error_of([&] { checkpoint_file(folder.path()); })
          .ends_with(": the folder holds neither best.safetensors nor last.safetensors; has its run finished "
                     "an epoch?"));
  write_checkpoint(folder / "last.safetensors", parts.weights, parts.model, parts.data, {{"epoch", 3}});
  CHECK(checkpoint_file(folder.path()) == folder / "last.safetensors");
  const Checkpoint read = read_checkpoint(folder.path(), Device::cpu);
  CHECK(read.path == folder / "last.safetensors");
  CHECK(read.data.class_names == parts.data.class_names);
  CHECK((read.data.channels == 3 && read.data.latent_scale == 0 && read.training == Json{{"epoch", 3}}));
  CHECK(read.model.parameters.state().front().second.values() == parts.weights.front().second.values());
  fs::copy(folder / "last.safetensors", folder / "best.safetensors");
  CHECK(checkpoint_file(folder.path()) == folder / "best.safetensors");
  CHECK(checkpoint_file(folder / "none") == folder / "none");
}

TEST_CASE("a checkpoint of latents says their channels and their scale") {
  Written file;
  file.parts.data.channels = 4;
  file.parts.data.latent_scale = 0.5;
  CHECK(file.refusal(file.parts.metadata()) == "");
  const Dataset data = read_checkpoint(file.path(), Device::cpu).data.empty_dataset();
  CHECK((data.image_shape == Shape{4, 8, 8} && data.latent_scale == 0.5));
}

TEST_CASE("a file that is no checkpoint, or one of another version, is refused with the reason") {
  const Written file;
  CHECK(file.without("format") == "");  // as the first versions wrote it
  for (const std::string key : {"model", "data", "training"})
    CHECK(file.without(key) == "is no checkpoint of tessera train: its metadata has no '" + key + "'");
  CHECK(file.with("format", "pt") == "is no checkpoint of tessera train: its format is 'pt'");
  CHECK(file.with("format", "tessera checkpoint 3") ==
        "has the format 'tessera checkpoint 3', this program reads 'tessera checkpoint 2'");
  CHECK(file.with("format", "tessera checkpoint 1") == "");
  file.lose_checksum();
  CHECK(file.said() == "");
  CHECK(file.refusal(file.parts.metadata()) == "");
  file.lose_checksum();
  CHECK(file.said() == "has no checksum, so it was not written by this program as it is");
  CHECK(file.with("data", "{").starts_with("metadata data: line 1, column "));
}

TEST_CASE("facts about the data that contradict themselves, or the model, are refused") {
  const Written file;
  CHECK(changed_facts(file, Json::object()) == "");
  CHECK(changed_facts(file, {{"mean", {0, 1}}}) == "data.mean has 2 numbers, wanted 3");
  CHECK(changed_facts(file, {{"deviation", {0, 1, 2, 3}}}) == "data.deviation has 4 numbers, wanted 3");
  CHECK(changed_facts(file, {{"image_size", 0}}) == "data.image_size is 0, wanted an integer from 1 to 4096");
  CHECK(changed_facts(file, {{"latent_scale", -1}}).starts_with("data.latent_scale is -1, wanted"));
  CHECK(changed_facts(file, {{"colour", 1}}).starts_with("data.colour is not known here"));
  CHECK(changed_facts(file, {{"image_size", 16}}) ==
        "the model takes images of 8 pixels and has 3 classes, its data 16 and 3");
  CHECK(changed_facts(file, {{"class_names", {"a", "b"}}}) ==
        "the model takes images of 8 pixels and has 3 classes, its data 8 and 2");
}

TEST_CASE("a state's metadata is read entry by entry") {
  TensorFile file{"state.safetensors", {}, {{"format", "x"}}};
  CHECK(metadata_of(file, "format") == "x");
  CHECK(error_of([&] { metadata_of(file, "position"); }) ==
        "state.safetensors: is not the state of a run: its metadata has no 'position'");
  CHECK(saved_precision(file) == std::nullopt);
  for (const Precision precision : {Precision::f32, Precision::tf32, Precision::bf16}) {
    file.metadata["precision"] = name(precision);
    CHECK(saved_precision(file) == precision);
  }
  file.metadata["precision"] = "f16";
  CHECK(error_of([&] { saved_precision(file); }) ==
        "state.safetensors: precision: 'f16' is not one of f32, tf32, bf16");
}

TEST_CASE("a state whose weights are not finite, or which is none, is refused") {
  const TemporaryFolder folder;
  const auto refusal = [&](const NamedTensors& tensors, const Metadata& metadata) {
    write_safetensors(folder / "x", tensors, metadata);
    return error_of([&] { read_state(folder / "x"); }).substr((folder / "x").string().size());
  };
  CHECK(refusal({}, {}) == ": is not the state of a run: its metadata has no 'format'");
  CHECK(refusal({{"w", Tensor::full({2}, NAN)}}, {{"format", state_format()}}) ==
        ": 'w', [2]: 2 of its 2 numbers are NaN, the first at [0]");
  CHECK(refusal({}, {{"format", "pt"}}) ==
        ": has the format 'pt', this program reads '" + std::string(state_format()) + "'");
}

TEST_CASE("two configs differ key by key, and where one has what the other has not") {
  const Json a{{"x", 1}, {"deep", {{"y", {1, 2}}, {"old", true}}}},
      b{{"x", 1}, {"deep", {{"y", {1, 3}}}}, {"new", 5}};
  CHECK(differences(a, a).empty());
  CHECK(differences(a, b) == std::vector<std::string>{"deep.y is [1,3], the state was saved with [1,2]",
                                                      "deep.old is null, the state was saved with true",
                                                      "new is 5, the state was saved with null"});
  CHECK(differences(a, Json(3)) == std::vector<std::string>{" is 3, the state was saved with " + a.dump()});
  CHECK(differences(Json(3), a).size() == 1);
}
