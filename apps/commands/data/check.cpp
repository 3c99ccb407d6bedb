#include <fmt/core.h>

#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>

#include "apps/commands/commands.h"
#include "apps/options/data_source.h"
#include "apps/options/options.h"
#include "apps/reporting/table.h"
#include "apps/training/progress.h"
#include "data/check.h"
#include "data/registry.h"
#include "engine/core/error.h"
#include "engine/core/printable.h"

namespace tessera {

namespace {

struct Options {
  DataSource source;
  bool json = false;
};

constexpr Column class_columns[] = {
    {"index", "class", as_integer},
    {"train", "training", as_integer},
    {"validation", "validation", as_integer},
    {"name", "name"},
};

Json to_json(const Finding& finding) {
  return {{"kind", finding.kind},       {"wrong", finding.wrong},           {"count", finding.count},
          {"message", finding.message}, {"same_files", finding.same_files}, {"examples", finding.examples}};
}

Json describe(const Dataset& data, const DatasetCheck& result) {
  Json classes = Json::array(), findings = Json::array();
  for (size_t k = 0; k < data.class_names.size(); ++k)
    classes.push_back({{"index", k},
                       {"name", data.class_names[k]},
                       {"train", result.histogram[0][k]},
                       {"validation", result.histogram[1][k]}});
  for (const Finding& finding : result.findings) findings.push_back(to_json(finding));
  return {{"name", data.name},
          {"passed", result.passed()},
          {"train", result.images[0]},
          {"validation", result.images[1]},
          {"height", {result.sizes[0], result.sizes[1]}},
          {"width", {result.sizes[2], result.sizes[3]}},
          {"findings", findings},
          {"notes", data.notes},
          {"classes", classes}};
}

// What the reader refuses is what a check is there to find.
Json layout_failure(const std::string& name, const std::string& message) {
  const Finding finding{.kind = "layout", .message = message, .count = 1, .examples = {}, .wrong = true};
  return {{"name", name}, {"passed", false}, {"findings", Json::array({to_json(finding)})}};
}

std::string range_text(const Json& range) {
  const auto least = range[0].get<int>(), most = range[1].get<int>();
  return least == most ? std::to_string(least) : fmt::format("{} to {}", least, most);
}

void print_findings(const Json& findings) {
  for (const Json& finding : findings) {
    const auto files = finding["same_files"].get<int64_t>();
    fmt::print("{} {}: {}{}\n", finding["wrong"] ? "WRONG" : "note ", finding["kind"].get<std::string>(),
               printable(finding["message"].get<std::string>()),
               files > 0 ? fmt::format(" ({} equal as files too)", files) : "");
    for (const Json& example : finding["examples"])
      fmt::print("        {}\n", printable(example.get<std::string>()));
    const auto shown = static_cast<int64_t>(finding["examples"].size());
    if (const auto count = finding["count"].get<int64_t>(); shown > 0 && count > shown)
      fmt::print("        and {} more\n", count - shown);
  }
}

void print_for_people(const Json& report) {
  const std::string name = report["name"].get<std::string>();
  if (report.contains("classes")) {
    print_table(class_columns, report["classes"]);
    fmt::print("\n{}: {} training and {} validation images, {} pixels wide, {} high\n", name,
               as_integer(report["train"]), as_integer(report["validation"]), range_text(report["width"]),
               range_text(report["height"]));
    for (const Json& note : report["notes"]) fmt::print("note  {}\n", printable(note.get<std::string>()));
  }
  print_findings(report["findings"]);
  fmt::print("{}: {}\n", name, report["passed"] ? "nothing wrong" : "something is wrong");
}

Json checked(const Options& options) {
  const auto& [name, folder, coarse] = options.source;
  const DatasetEntry& entry = find_dataset(name);
  Progress progress;
  try {
    const Dataset data = open_dataset(name, folder, options.source.options());
    DatasetCheck result = check_dataset(data, &entry, [&](double share) {
      progress.show(fmt::format("{} {:3.0f} %", bar(share, 30), 100 * share));
    });
    if (entry.published)
      for (Finding& finding : check_sums(folder, entry)) result.findings.push_back(std::move(finding));
    progress.clear();
    return describe(data, result);
  } catch (const Error& error) {
    progress.clear();
    return layout_failure(name, error.what());
  }
}

ExitCode run(const Options& options) {
  const auto& [name, folder, coarse] = options.source;
  const DatasetEntry& entry = find_dataset(name);
  check_options(entry, options.source.options());
  check_folder(name, folder);
  const bool is_there = std::filesystem::is_directory(folder) ||
                        (entry.has_latents && std::filesystem::is_regular_file(folder));
  check(!entry.needs_folder || is_there, name, ": '", folder, "' is no folder");
  const Json report = checked(options);
  if (options.json)
    print_json(report);
  else
    print_for_people(report);
  return report["passed"].get<bool>() ? ExitCode::done : ExitCode::check_failed;
}

}  // namespace

void add_data_check(Command& data) {
  Command& command = add_command(
      data, "check", "Look at every picture of a data set for what is wrong.",
      {"tessera data check tiny-imagenet tiny-imagenet-200", "tessera data check folder photos --json"},
      "Layout; counts and checksums against what was published; pictures that cannot be decoded or have the "
      "wrong size; equal files and pictures, within a split and in both; the labels. Exit code 1 where "
      "something is wrong.");
  const auto options = std::make_shared<Options>();
  add_source(command, options->source);
  add_threads(command);
  add_json(command, options->json);
  on_run(command, [options] { return run(*options); });
}

}  // namespace tessera
