#include "apps/inspector/tape_page.h"

#include <algorithm>

#include "apps/inspector/page.h"
#include "apps/inspector/proof.h"
#include "engine/core/error.h"

namespace tessera {

namespace {

double loss_again(const PassRecord& record, const TapePageOptions& options) {
  Tape tape;
  tape.keep_all();
  const double loss = options.loss_again().item();
  check(tape.steps().size() == record.steps().size(), "page: loss_again takes ", tape.steps().size(),
        " steps; the tape has ", record.steps().size());
  return loss;
}

Json proofs_of_tape(const PassRecord& record, const TapePageOptions& options) {
  if (!options.loss_again || options.proofs <= 0) return Json::object();
  for (const PassRecord::Value& value : record.values())
    check(!value.gradient.defined() || value.value.dtype() == DType::f64, "page: ", value.name, " is ",
          value.value.dtype(), "; proofs are of a program whose leaves are f64");
  const auto leaf = [&](const std::string& name) -> const Tensor* {
    const auto found = std::find_if(options.names.begin(), options.names.end(),
                                    [&](const auto& named) { return named.first == name; });
    return found == options.names.end() ? nullptr : &found->second;
  };
  const Prover prover({record, [&] { return loss_again(record, options); }, leaf});
  return proofs_of(prover, options.proofs);
}

}  // namespace

void write_page(const std::filesystem::path& path, const Tape& tape, const Tensor& loss,
                const TapePageOptions& options) {
  check(tape.slot_of_known(loss) >= 0, "page: the tape did not record this loss");
  NamedTensors names = options.names;
  names.emplace_back("loss", loss);
  write_page(path, PassRecord(tape, names), options);
}

void write_page(const std::filesystem::path& path, const PassRecord& record, const TapePageOptions& options) {
  Page page{.kind = "tape", .title = options.title};
  page.passes.push_back({.record = &record,
                         .title = options.title,
                         .source = "a tape",
                         .classes = options.classes,
                         .target = options.target,
                         .predicted = options.predicted,
                         .picture = options.picture,
                         .proofs = proofs_of_tape(record, options)});
  write_page(page, path);
}

}  // namespace tessera
