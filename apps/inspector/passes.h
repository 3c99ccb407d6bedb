#pragma once

// The passes of one call of tessera inspect: the model's own, those that it is compared with, and those with
// a term switched off.

#include <deque>
#include <filesystem>
#include <string>
#include <vector>

#include "apps/inspector/page.h"
#include "apps/inspector/subject.h"
#include "apps/inspector/terms.h"

namespace tessera {

struct PassRequest {
  PictureSource pictures = {};  // every file after the first is one more pass of the model
  Question question = {};
  std::vector<std::string> without = {};  // terms, or "all": one more pass for each
  std::vector<std::string> only = {};     // modules; empty: everything
  int64_t proofs = 0;   // cells proved of every gradient; -1: usual_proofs(), of the first pass
  bool updates = true;  // whether the optimizer's next step is worked out
};

// One of the passes.
struct RequestedPass {
  std::string role;  // as PagePass has it
  std::string title, source;
  std::string term = {};  // that is switched off, by its name
  PassInputs inputs = {};
  InspectedPass pass;
  Json updates = {};             // see updates_of()
  Json proofs = Json::object();  // see proofs_of()
  std::string optimizer = {};    // the words of the optimizer that makes them
  Json learning_rate = {};       // see learning_rate_of()
  std::vector<std::string> left_out = {};
};

class Passes {
 public:
  Passes(const Subject& subject, const std::vector<Subject>& with, const PassRequest& request);

  const RequestedPass& main() const { return all_.front(); }
  const std::deque<RequestedPass>& all() const { return all_; }
  // The pass that --list and --tensor are about: the model's own, or the one without the term where exactly
  // one is switched off. Fails where the others are ambiguous.
  const RequestedPass& one() const;

  // It refers to these passes.
  Page page() const;
  // The model's own pass goes into the folder, each other into a folder inside: "with-cifar", "without-mask".
  void write_into(const std::filesystem::path& folder) const;

 private:
  void add(const Subject& subject, const std::string& role, const std::string& file,
           const PassRequest& request);
  void add_without(const Term& term, const PassRequest& request);
  void keep(RequestedPass pass, const PassRequest& request);

  std::deque<RequestedPass> all_;  // whose addresses stay
};

// "the loss, the cross entropy of class 3 (cat), is 2.31; left out: patch_embed, blocks.0"
std::string loss_words(const RequestedPass& pass);

// The names of the model's terms of which the page has no pass.
std::vector<std::string> terms_not_shown(const Page& page);

// The inputs of a subject's pass: a fixture's own, or those of the picture in `file` or of the data set.
PassInputs inputs_of(const Subject& subject, const PassRequest& request, const std::string& file);

}  // namespace tessera
