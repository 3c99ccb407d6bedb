#include "apps/inspector/subject.h"

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "apps/training/checkpoint.h"
#include "data/formats/resize.h"
#include "data/registry.h"
#include "engine/core/error.h"
#include "engine/io/safetensors.h"
#include "models/presets.h"

namespace tessera {

namespace fs = std::filesystem;

namespace {

// A fixture has a config, as a checkpoint has, but no facts of a data set.
bool is_fixture(const std::string& path) {
  if (!path.ends_with(".safetensors") || !fs::is_regular_file(path)) return false;
  const auto metadata = read_safetensors(path).metadata;
  return metadata.contains("config") && !metadata.contains("data");
}

// "sl-vit", "cifar" for runs/cifar/, "sl-vit" for sl-vit.safetensors.
std::string name_of_source(const std::string& source) {
  const fs::path path = fs::path(source).lexically_normal();
  const std::string name = path.has_filename() ? path.stem().string() : path.parent_path().stem().string();
  return name.empty() ? "pass" : name;
}

Model in_type(const Model& model, DType dtype) {
  return model.parameters.begin()->value.dtype() == dtype ? model : copy_as(model, dtype);
}

// The data set that pictures come from, with the run's split where it is the run's own.
DataConfig data_of(const Subject& subject, const PictureSource& source) {
  DataConfig data;
  const bool segments = subject.model.task == Task::segment;
  data.name = !source.dataset.empty()      ? source.dataset
              : !subject.data.name.empty() ? subject.data.name
              : segments                   ? "shapes-seg"
                                           : "shapes";
  if (data.name == subject.data.name) data = subject.data;
  check_folder(data.name, source.folder);
  data.dir = source.folder;
  data.image_size = subject.model.image_size();
  const bool needs_folder = find_dataset(data.name).needs_folder;
  check(!needs_folder || !data.dir.empty() || !source.dataset.empty(), "inspect: of which picture? ",
        subject.source, " was trained on ", data.name,
        "; give its folder (--data DIR) or a picture (--image FILE)");
  if (!needs_folder) {  // pictures that are drawn: no more than are needed
    data.train_images = 1;
    if (data.validation_images == 0) data.validation_images = source.index + 1;
  }
  return data;
}

}  // namespace

Subject read_subject(const std::string& source, const SubjectOptions& options) {
  Subject subject{.source = source, .name = name_of_source(source)};
  if (is_fixture(source)) {
    subject.fixture = inputs_of_fixture(source, options.dtype);
    subject.model = subject.fixture->model;
    subject.next = default_step();
    return subject;
  }
  if (fs::exists(source)) {
    const Checkpoint checkpoint = read_checkpoint(source, Device::cpu);
    subject.model = in_type(checkpoint.model, options.dtype);
    subject.facts = {checkpoint.data.normalisation, checkpoint.data.class_names};
    subject.data = checkpoint.data.source;
    subject.next = next_step_of(source);
    return subject;
  }
  const Json config = preset(source, options.image_size, options.classes);
  subject.model = build(config, {.seed = options.seed, .dtype = options.dtype});
  const bool diffuses = subject.model.task == Task::diffuse;
  subject.facts.normalisation = diffuses ? diffusion_normalisation : imagenet_normalisation;
  subject.next = default_step();
  return subject;
}

KnownPicture picture_for(const Subject& subject, const PictureSource& source, const std::string& file) {
  if (!file.empty())
    return {.image = fit_square(load_image(file), static_cast<int>(subject.model.image_size()), file,
                                test_fit(subject.data))};
  const DataConfig data = data_of(subject, source);
  const Dataset dataset = open_dataset(data.name, data.dir, dataset_options(data));
  check(source.index < dataset.validation->size(), "inspect: --index ", source.index, ": ", data.name,
        " has ", dataset.validation->size(), " validation pictures");
  KnownPicture picture;
  dataset.validation->image(source.index, picture.image);
  if (!dataset.validation->has_masks())
    picture.label = dataset.validation->label(source.index);
  else if (dataset.classes() <= subject.model.num_classes())
    dataset.validation->mask(source.index, picture.mask.emplace());
  return picture;
}

}  // namespace tessera
