#pragma once

// What is exported: a model and the facts that whoever uses it elsewhere needs.

#include <map>
#include <string>
#include <vector>

#include "apps/training/checkpoint.h"

namespace tessera {

struct ExportSource {
  std::string name;  // for titles and files: "cifar" for runs/cifar/
  Model model;
  DataFacts data;
  Json training = Json::object();  // as the checkpoint has it
};

// A checkpoint, a run folder (its best checkpoint), a fixture, a model's config (.json) or the name of a
// preset; the last two get the weights that training would start from. Classes without names are called "0",
// "1" ...
ExportSource read_export_source(const std::string& source, int64_t image_size, int64_t classes,
                                uint64_t seed);

// The facts as text: "architecture", "task", "classes", "mean", "deviation", "image_size", "config" and,
// where it is known, "data"; lists and objects in JSON. Pixels / 255 minus the mean, over the deviation, are
// what the model takes, in the order of red, green, blue.
std::map<std::string, std::string> export_metadata(const ExportSource& source);

// Some inputs, without a pattern, and what this program computes of them: "images" and "logits", of a
// diffusion model "images", "t", "y" and "noise". With them an exported file can be checked elsewhere.
NamedTensors export_sample(const Model& model, int64_t images);

// A checkpoint with the metadata of export_metadata() besides its own, so that `tessera predict` reads it
// too.
void export_safetensors(const ExportSource& source, const std::string& path);

}  // namespace tessera
