#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "data/formats/image.h"
#include "engine/autograd/pass_record.h"
#include "engine/autograd/tape.h"
#include "engine/core/named_tensors.h"
#include "engine/core/tensor.h"

namespace tessera {

/// What a page tells beside the numbers of a tape.
struct TapePageOptions {
  std::string title = "pass";
  NamedTensors names = {};                ///< of leaves, constants and values on the way
  std::optional<Image> picture = {};      ///< what goes in, before normalisation; the value "input" holds it
  std::vector<std::string> classes = {};  ///< their names
  int64_t target = -1, predicted = -1;    ///< classes; -1: there is none
  /// Computes the loss again from the same leaves, which `names` has and which are f64: the page then has
  /// proofs, central differences of this loss, of `proofs` cells of every gradient.
  std::function<Tensor()> loss_again = {};
  int64_t proofs = 4;
};

/// Writes one HTML file with every value and every gradient of a tape that keeps everything, after its
/// backward(). It opens in a browser from disk. A value without a name is called by its op and the module
/// that ran it (PassRecord).
///
///   Tape tape;
///   tape.keep_all();
///   const Tensor loss = mean(gelu(matmul(x, w)));
///   tape.backward(loss);
///   write_page("graph.html", tape, loss, {.title = "my graph", .names = {{"x", x}, {"w", w}}});
///
/// Fails for a tape whose steps hold no values, for a loss that it did not record, and where proofs are asked
/// for of a program that does not compute in f64 or takes other steps the second time.
void write_page(const std::filesystem::path& path, const Tape& tape, const Tensor& loss,
                const TapePageOptions& options = {});

/// The same of a record that exists already; its loss is the value of that name, or the last one.
/// options.names is used for proofs alone.
void write_page(const std::filesystem::path& path, const PassRecord& record,
                const TapePageOptions& options = {});

}  // namespace tessera
