#pragma once

#include "engine/ops/attention/attention.h"

namespace tessera {

// The lines of a grid of tokens: its rows or its columns. The decomposed form of attention takes each line as
// a sequence of its own.
enum class Lines { rows, columns };

// The grid of one line: {1, w} or {h, 1}.
Grid line_grid(Grid grid, Lines lines);

// Tokens line by line: [B, h w, D] -> [B h, w, D], a view, or [B w, h, D]; and back.
Tensor by_line(const Tensor& x, Grid grid, Lines lines);
Tensor from_lines(const Tensor& x, Grid grid, Lines lines);

}  // namespace tessera
