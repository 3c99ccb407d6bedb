#include "apps/inspector/passes.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "apps/inspector/export.h"
#include "apps/inspector/only.h"
#include "apps/inspector/proof.h"
#include "apps/inspector/terms.h"
#include "engine/core/error.h"

namespace tessera {

namespace fs = std::filesystem;

namespace {

// The same model with weights and gradients of its own, as the record of a pass shares those of its model.
Subject apart(const Subject& subject) {
  Subject copy = subject;
  copy.model = copy_as(subject.model, subject.model.parameters.begin()->value.dtype());
  return copy;
}

// The class that a pass asks for, for another model with the same classes; else -1.
int64_t target_for(const PassInputs& asked, const Model& other) {
  const auto target = asked.inputs.find("target");
  const bool same = other.num_classes() == asked.model.num_classes() && other.task == asked.model.task;
  const bool one = target != asked.inputs.end() && target->second.elements() == 1;
  return same && one && !is_float(target->second.dtype()) ? target->second.integers()[0] : -1;
}

std::vector<Term> chosen_terms(const Json& config, const std::vector<std::string>& without) {
  std::vector<Term> terms;
  const std::vector<Term> known = terms_of(config);
  if (without == std::vector<std::string>{"all"}) return known;
  for (const std::string& name : without) {
    const auto found = std::ranges::find(known, name, &Term::name);
    terms.push_back(found == known.end() ? Term{name, name}
                                         : *found);  // without_term() refuses an unknown one
  }
  return terms;
}

// Letters, digits and "._-"; the rest becomes '_'.
std::string folder_name(std::string name) {
  for (char& c : name)
    if (!std::isalnum(static_cast<unsigned char>(c)) && c != '.' && c != '-') c = '_';
  return name;
}

// The proofs of a whole pass's values, by their places in a part.
Json proofs_at(const Json& proofs, const std::vector<size_t>& places) {
  Json kept = Json::object();
  for (size_t i = 0; i < places.size(); ++i)
    if (const auto found = proofs.find(std::to_string(places[i])); found != proofs.end())
      kept[std::to_string(i)] = *found;
  return kept;
}

Json facts_of(const RequestedPass& pass) {
  Json facts{{"title", pass.title},      {"source", pass.source},       {"asks", pass.inputs.asks},
             {"updates", pass.updates},  {"optimizer", pass.optimizer}, {"learning_rate", pass.learning_rate},
             {"left_out", pass.left_out}};
  if (!pass.term.empty()) facts["without"] = pass.term;
  return facts;
}

}  // namespace

std::string loss_words(const RequestedPass& pass) {
  std::string words = fmt::format(
      "the loss{} is {:.6g}", pass.inputs.asks.empty() ? "" : ", " + pass.inputs.asks + ",", pass.pass.loss);
  if (!pass.left_out.empty()) words += fmt::format("; left out: {}", fmt::join(pass.left_out, ", "));
  return words;
}

std::vector<std::string> terms_not_shown(const Page& page) {
  std::vector<std::string> names;
  for (const Json& term : page.terms)
    if (term["pass"].is_null()) names.push_back(term["name"]);
  return names;
}

PassInputs inputs_of(const Subject& subject, const PassRequest& request, const std::string& file) {
  if (subject.fixture) return *subject.fixture;
  return inputs_of_picture(subject.model, picture_for(subject, request.pictures, file), subject.facts,
                           request.question);
}

Passes::Passes(const Subject& subject, const std::vector<Subject>& with, const PassRequest& request) {
  const std::vector<std::string>& files = request.pictures.images;
  const std::string first = files.empty() ? "" : files.front();
  add(subject, "main", first, request);
  for (size_t i = 1; i < files.size(); ++i) add(apart(subject), "with", files[i], request);
  PassRequest same = request;
  for (const Subject& other : with) {
    const int64_t target = target_for(main().inputs, other.model);
    same.question.target = target >= 0 ? target : request.question.target;
    add(apart(other), "with", first, same);
  }
  for (const Term& term : chosen_terms(subject.model.config, request.without)) add_without(term, request);
}

void Passes::keep(RequestedPass pass, const PassRequest& request) {
  int64_t count = request.proofs;
  if (count < 0) count = all_.empty() ? usual_proofs(pass.inputs, pass.pass.record) : 0;
  if (count > 0) pass.proofs = proofs_of([&] { return experiment_of(pass.inputs); }, count);
  if (!request.only.empty()) {
    PartOfPass part = only(pass.pass, request.only);
    pass.proofs = proofs_at(pass.proofs, part.places);
    pass.pass.record = std::move(part.record);
    pass.pass.roundings = std::move(part.roundings);
    pass.left_out = std::move(part.left_out);
  }
  all_.push_back(std::move(pass));
}

void Passes::add(const Subject& subject, const std::string& role, const std::string& file,
                 const PassRequest& request) {
  PassInputs inputs = inputs_of(subject, request, file);
  InspectedPass pass = inspect_pass(inputs);
  const bool several = request.pictures.images.size() > 1;
  keep({.role = role,
        .title = subject.name + (several ? ", " + fs::path(file).filename().string() : ""),
        .source = subject.source,
        .inputs = inputs,
        .pass = std::move(pass),
        .updates = request.updates ? updates_of(subject.model, subject.next) : Json(),
        .optimizer = subject.next.words,
        .learning_rate = learning_rate_of(subject.next)},
       request);
}

void Passes::add_without(const Term& term, const PassRequest& request) {
  PassInputs inputs = main().inputs;
  inputs.model = without_term(inputs.model, term.name);
  InspectedPass pass = inspect_pass(inputs);
  keep({.role = "term",
        .title = main().title + " without the " + term.title,
        .source = main().source,
        .term = term.name,
        .inputs = std::move(inputs),
        .pass = std::move(pass)},
       request);
}

const RequestedPass& Passes::one() const {
  const auto terms =
      std::ranges::count_if(all_, [](const RequestedPass& pass) { return pass.role == "term"; });
  check(std::ssize(all_) == 1 + terms && terms <= 1,
        "inspect: --list and --tensor are about one pass, and here are ", all_.size(),
        "; leave --with, the further pictures and terms out, or --export all of them");
  return all_.back();
}

Page Passes::page() const {
  Page page{.title = main().title, .left_out = main().left_out};
  for (const Term& term : terms_of(main().inputs.model.config)) {
    const auto found = std::ranges::find(all_, term.name, &RequestedPass::term);
    page.terms.push_back({{"name", term.name},
                          {"title", term.title},
                          {"pass", found == all_.end() ? Json() : Json(found - all_.begin())}});
  }
  for (const RequestedPass& pass : all_) {
    PagePass& shown = page.passes.emplace_back(page_pass(pass.inputs, pass.pass));
    shown.role = pass.role;
    shown.title = pass.title;
    shown.source = pass.source;
    shown.proofs = pass.proofs;
    shown.updates = pass.updates;
    shown.optimizer = pass.optimizer;
    shown.learning_rate = pass.learning_rate;
  }
  return page;
}

void Passes::write_into(const fs::path& folder) const {
  std::vector<std::string> taken;
  for (const RequestedPass& pass : all_) {
    std::string name = pass.role == "main"   ? ""
                       : pass.role == "term" ? "without-" + pass.term
                                             : "with-" + folder_name(pass.title);
    const auto again = std::ranges::count(taken, name);
    taken.push_back(name);
    if (again > 0) name += "-" + std::to_string(again + 1);
    export_pass(pass.pass.record, folder / name, facts_of(pass));
  }
}

}  // namespace tessera
