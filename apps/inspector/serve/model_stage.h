#pragma once

#include <string>

#include "apps/inspector/pass.h"
#include "apps/inspector/serve/stage.h"
#include "engine/optim/adamw.h"

namespace tessera {

// A model on stage, with one picture. Its step is AdamW's, on the loss of this picture, in memory alone.
class ModelStage : public Stage {
 public:
  struct Options {
    std::string title, source;
    int64_t target = -1;  // the class that the loss asks for in any picture; -1: the likeliest
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
  PassInputs inputs_;
  Options options_;
  InspectedPass pass_;
  AdamW optimizer_;
};

}  // namespace tessera
