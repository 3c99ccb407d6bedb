#pragma once

#include "engine/core/tensor.h"
#include "engine/core/thread_scope.h"
#include "engine/ops/attention/decay.h"

namespace tessera {

// Where the tokens of an attention lie on the map of the image, for observers that draw its probabilities.
struct TokenLayout {
  Grid grid;           // the whole map
  int64_t prefix = 0;  // tokens in front of the map's: the class token
  // The token at each place of the sequences, one sequence after another (Swin's windows), i64. Null: row by
  // row, or column by column where `columns` is set.
  const Tensor* order = nullptr;  // [h w]
  bool columns = false;
};

// Tells observers where attention's tokens lie on the image; the outermost scope wins.
class TokenLayoutScope : public ThreadScope<TokenLayoutScope> {
 public:
  explicit TokenLayoutScope(const TokenLayout& layout) : layout_(layout) {}

  // The outermost scope's, or null where there is none.
  static const TokenLayout* layout() {
    const TokenLayoutScope* scope = current();
    while (scope && scope->outer()) scope = scope->outer();
    return scope ? &scope->layout_ : nullptr;
  }

 private:
  TokenLayout layout_;
};

}  // namespace tessera
