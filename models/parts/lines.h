#pragma once

#include "engine/ops/attention/attention.h"

namespace tessera {

/// The lines of a token grid, its rows or its columns. Decomposed attention takes each line as a sequence.
enum class Lines { rows, columns };

/// The grid of one line: {1, w} or {h, 1}.
Grid line_grid(Grid grid, Lines lines);

/// Tokens as lines: [B, h w, D] -> rows [B h, w, D], a view, or columns [B w, h, D]. from_lines is the
/// inverse.
Tensor by_line(const Tensor& x, Grid grid, Lines lines);
Tensor from_lines(const Tensor& x, Grid grid, Lines lines);

}  // namespace tessera
