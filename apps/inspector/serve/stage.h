#pragma once

// What a served page can ask of the engine behind it.

#include <string>

#include "apps/inspector/page.h"
#include "data/formats/image.h"

namespace tessera {

// Holds a pass and makes it anew when something changes: the picture, a term, the weights. Everything happens
// in memory. The functions fail with an Error for what does not exist.
class Stage {
 public:
  Stage() = default;
  virtual ~Stage() = default;
  Stage(const Stage&) = delete;
  Stage& operator=(const Stage&) = delete;

  // The page as things are now; it refers to the stage's passes.
  virtual Page page() = 0;

  // The whole model's proof of a cell of value `value` of pass `pass`: {cell, analytic, difference, error,
  // ok}, the gradient and the central difference of the loss, both in double.
  virtual Json prove(size_t pass, size_t value, int64_t cell) = 0;

  // Another picture.
  virtual void show(const Image& picture) = 0;

  // Switches a term of the model off, or on again.
  virtual void set_term(const std::string& name, bool on) = 0;

  // Takes one step of the optimizer.
  virtual void step() = 0;
};

}  // namespace tessera
