#pragma once

#include "engine/core/tensor.h"
#include "engine/ops/decay.h"

namespace tessera {

// Where the tokens of an attention lie on the map of the image, for those who look at its probabilities.
struct Places {
  Grid grid;           // the whole map
  int64_t prefix = 0;  // tokens in front of the map's: the class token
  // i64 [h w]: the token at each place of the sequences, one sequence after another (Swin's windows); null:
  // row by row, or, with `columns`, column by column.
  const Tensor* order = nullptr;
  bool columns = false;
};

// While one lives, attention on this thread is over these places; the outermost one counts.
class Over {
 public:
  explicit Over(const Places& places) : places_(places), outer_(current_) {
    if (!outer_) current_ = &places_;
  }
  ~Over() { current_ = outer_; }
  Over(const Over&) = delete;
  Over& operator=(const Over&) = delete;
  static const Places* places() { return current_; }

 private:
  inline static thread_local const Places* current_ = nullptr;
  Places places_;
  const Places* outer_;
};

}  // namespace tessera
