#include "apps/inspector/only.h"

#include <algorithm>
#include <set>
#include <string_view>
#include <utility>

#include "engine/core/error.h"
#include "engine/optim/parameter_groups.h"

namespace tessera {

namespace {

// "blocks", "blocks.4" and "blocks.4.attn" of "blocks.4.attn".
std::vector<std::string> enclosing(const std::string& module) {
  std::vector<std::string> paths;
  for (size_t dot = module.find('.'); dot != module.npos; dot = module.find('.', dot + 1))
    paths.push_back(module.substr(0, dot));
  if (!module.empty()) paths.push_back(module);
  return paths;
}

bool is_named(const std::string& module, const std::string& pattern) {
  const auto paths = enclosing(module);
  return std::ranges::any_of(paths, [&](const std::string& path) { return matches(path, pattern); });
}

void check_names_a_module(const PassRecord& record, const std::string& pattern) {
  std::set<std::string> known;
  for (const PassRecord::Step& step : record.steps()) {
    if (is_named(step.module, pattern)) return;
    for (std::string& path : enclosing(step.module)) known.insert(std::move(path));
  }
  fail("inspect: --only ", pattern, ": the model has no such module",
       did_you_mean(pattern, {known.begin(), known.end()}));
}

std::vector<std::string> left_out_of(const PassRecord& record, const std::set<std::string>& kept) {
  std::vector<std::string> names;
  const auto add = [&](const std::string& name) {
    if (std::ranges::find(names, name) == names.end()) names.push_back(name);
  };
  for (const PassRecord::Step& step : record.steps()) {
    const auto paths = enclosing(step.module);
    const auto outermost =
        std::ranges::find_if(paths, [&](const std::string& path) { return !kept.contains(path); });
    if (paths.empty())
      add("the model's own steps");
    else if (outermost != paths.end())
      add(*outermost);
  }
  return names;
}

// Where the values of a part stand in the whole, whose order they keep.
std::vector<size_t> places_in(const PassRecord& whole, const PassRecord& part) {
  std::vector<size_t> places;
  size_t place = 0;
  for (const PassRecord::Value& value : part.values()) {
    while (whole.values()[place].name != value.name) ++place;
    places.push_back(place);
  }
  return places;
}

Roundings roundings_at(const Roundings& whole, const PassRecord& part, const std::vector<size_t>& places) {
  Roundings roundings;
  if (whole.values.empty()) return roundings;
  for (size_t i = 0; i < places.size(); ++i) {
    const bool all_readers = part.values()[i].readers_left_out == 0;
    roundings.values.push_back(whole.values[places[i]]);
    roundings.gradients.push_back(all_readers ? whole.gradients[places[i]] : Rounding());
  }
  return roundings;
}

}  // namespace

PartOfPass only(const InspectedPass& pass, const std::vector<std::string>& patterns) {
  const PassRecord& record = pass.record;
  for (const std::string& pattern : patterns) check_names_a_module(record, pattern);
  const auto keep = [&](const PassRecord::Step& step) {
    return std::ranges::any_of(patterns,
                               [&](const std::string& pattern) { return is_named(step.module, pattern); });
  };
  std::set<std::string> kept;
  for (const PassRecord::Step& step : record.steps())
    if (keep(step))
      for (std::string& path : enclosing(step.module)) kept.insert(std::move(path));
  PassRecord part = record.part(keep, {"input", "target", "logits", "loss"});
  std::vector<size_t> places = places_in(record, part);
  Roundings roundings = roundings_at(pass.roundings, part, places);
  return {std::move(part), std::move(roundings), std::move(places), left_out_of(record, kept)};
}

}  // namespace tessera
