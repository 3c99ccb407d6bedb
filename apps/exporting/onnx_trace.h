#pragma once

// From recorded forward passes to a graph of ONNX operators.

#include <functional>
#include <string>
#include <vector>

#include "apps/exporting/onnx_graph.h"
#include "engine/nn/parameters.h"

namespace tessera {

// What goes into a traced program and comes out of it.
struct TracedInput {
  std::string name;
  Tensor value;
};

// A table of which a program reads a row for each entry of an input: a gather that no tape records, because a
// constant needs no gradient.
struct TracedTable {
  std::string name, index;  // of the table, and of the input
  Tensor rows;              // [R, ...]
};

struct TracedProgram {
  // The inputs for this many images, the first axis of each the batch.
  std::function<std::vector<TracedInput>(int64_t images)> inputs;
  std::function<Tensor(const std::vector<TracedInput>& inputs)> run;
  std::vector<TracedTable> tables = {};
};

// Runs the program for two batches of different sizes with a tape that keeps everything, and adds the steps
// that its output depends on. Sizes that differ between both passes are multiples of the batch. Constants
// keep the names of the parameters whose memory they are. Fails, naming module and op, for a step that cannot
// be said for every batch.
void trace_onnx(OnnxGraph& graph, const TracedProgram& program, const Parameters& parameters,
                const std::string& output);

}  // namespace tessera
