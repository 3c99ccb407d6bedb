#pragma once

// What tessera inspect is told to inspect, and the pictures that it is shown.

#include <optional>
#include <string>
#include <vector>

#include "apps/inspector/next_update.h"
#include "apps/inspector/picture_inputs.h"

namespace tessera {

// A model from the command line.
struct Subject {
  std::string source, name;  // as given, and for titles: "runs/cifar/", "cifar"
  Model model = {};
  PictureFacts facts = {};
  DataConfig data = {};                    // a run's; its name is empty for a preset
  NextStep next = {};                      // of its optimizer
  std::optional<PassInputs> fixture = {};  // the inputs that a fixture brings
};

struct SubjectOptions {
  DType dtype = DType::f32;
  uint64_t seed = 0;  // of a preset's weights
  int64_t image_size = 32, classes = 10;
};

// Reads a run folder, a checkpoint, a fixture, or builds a preset. Fails as `predict` does for a run that
// cannot be read, and for an unknown name.
Subject read_subject(const std::string& source, const SubjectOptions& options);

struct PictureSource {
  std::vector<std::string> images = {};  // files; empty: a validation picture of the data set
  std::string dataset = {}, folder = {};
  int64_t index = 0;
};

// The picture for the model: of the file, or where that is empty of the data set: the one given, else the
// run's own with its split, else shapes. Fails, naming the file, for one that is no picture, and for an index
// that the data set does not have.
KnownPicture picture_for(const Subject& subject, const PictureSource& source, const std::string& file);

}  // namespace tessera
