#pragma once

#include <map>
#include <string>

#include "apps/inspector/picture_inputs.h"
#include "apps/inspector/serve/stage.h"
#include "data/formats/resize.h"
#include "engine/optim/adamw.h"

namespace tessera {

// A model on stage, with one picture. Its step is AdamW's, on the loss of this picture, in memory alone. A
// term that is switched off (terms.h) adds a pass without it to the page, beside the whole model's.
class ModelStage : public Stage {
 public:
  struct Options {
    std::string title, source;
    Question question = {};  // what the loss asks for in any picture
    SquareFit fit = {};      // of pictures that are shown to it
    double rate = 1e-4, weight_decay = 0.05;
  };

  ModelStage(PassInputs inputs, Options options);

  Page page() override;
  Json prove(size_t pass, size_t value, int64_t cell) override;
  void show(const Image& picture) override;
  void set_term(const std::string& name, bool on) override;
  void step() override;

  const InspectedPass& pass() const { return pass_; }

 private:
  struct Without {
    PassInputs inputs;
    InspectedPass pass;
  };

  Without without(const std::string& term) const;
  void refresh();                                  // after inputs or weights have changed
  const PassInputs& inputs_of(size_t pass) const;  // by its place on the page

  PassInputs inputs_;
  Options options_;
  InspectedPass pass_;
  AdamW optimizer_;
  int64_t steps_ = 0;
  std::map<std::string, Without> off_;  // by term
};

}  // namespace tessera
