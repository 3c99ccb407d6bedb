#include "apps/reporting/run_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "apps/reporting/chart.h"
#include "apps/reporting/classes_section.h"
#include "apps/reporting/config_section.h"
#include "apps/reporting/curves_section.h"
#include "apps/reporting/html.h"
#include "apps/reporting/pictures_section.h"
#include "apps/reporting/table.h"
#include "apps/reporting/watch_section.h"
#include "apps/training/progress.h"
#include "apps/training/validation.h"
#include "engine/core/error.h"
#include "engine/core/replay.h"
#include "engine/io/file.h"

namespace tessera {

namespace fs = std::filesystem;

namespace {

constexpr size_t most_mistakes = 24, most_masks = 9;

std::string or_dash(const Json& value, const std::function<std::string(double)>& text) {
  return value.is_number() ? text(value.get<double>()) : "-";
}

std::string score(Task task, double value) {
  return number_text(value, task == Task::diffuse ? NumberStyle::plain : NumberStyle::percent);
}

std::string plain(double value) { return number_text(value, NumberStyle::plain); }

std::string at_epoch(int64_t epoch) { return epoch > 0 ? fmt::format("after epoch {}", epoch) : ""; }

std::string time_text(double seconds) {
  return seconds < 3600 ? clock_text(seconds) + " min" : clock_text(seconds) + " h";
}

std::vector<Figure> figures_of(const RunRecord& run) {
  const Json s = summary_of(run);
  const int64_t best = best_epoch(run), last = last_evaluated(run);
  const auto score_of = [&](const Json& value) {
    return or_dash(value, [&](double v) { return score(run.task, v); });
  };
  std::vector<Figure> list{{score_of(s["best"]), "best " + score_name(run.task), at_epoch(best)},
                           {score_of(s["last"]), "last " + score_name(run.task), at_epoch(last)}};
  const auto at_best = [&](const char* column, const char* name) {
    if (const double value = value_at(run, column, best); std::isfinite(value))
      list.push_back({number_text(value, NumberStyle::percent), name, at_epoch(best)});
  };
  at_best("validation_top5", "top-5");
  at_best("validation_pixel_accuracy", "right pixels");
  if (run.task != Task::diffuse)
    list.push_back({or_dash(s["last_loss"], plain), "validation loss", at_epoch(last)});
  list.push_back({or_dash(s["train_loss"], plain), "training loss", at_epoch(run.epochs())});
  list.push_back({or_dash(s["images_per_second"], plain), "images/s", "in training, mean"});
  list.push_back({or_dash(s["seconds"], time_text), "training time",
                  fmt::format("{} epoch{}", run.epochs(), run.epochs() == 1 ? "" : "s")});
  return list;
}

std::string head_of(const RunRecord& run, const ReportSource* source) {
  std::string line = fmt::format("<b>{}</b> on <b>{}</b>", escaped(run.model_name()), escaped(run.dataset()));
  if (source) {
    const DataFacts& data = source->checkpoint.data;
    const bool latents = data.latent_scale > 0;
    line += fmt::format(
        " &middot; {} parameters &middot; {} training and {} validation {}, {} classes, {} x {} {}",
        as_metric(source->checkpoint.model.parameters.trainable_count()),
        number_text(static_cast<double>(source->dataset.train->size()), NumberStyle::integer),
        number_text(static_cast<double>(source->dataset.validation->size()), NumberStyle::integer),
        latents ? "latents" : "pictures", source->dataset.classes(), data.image_size, data.image_size,
        latents ? fmt::format("x {} numbers", data.channels) : "pixels");
  }
  const Json about = run.config.value("about", Json());
  const std::string text = about.is_string() ? about.get<std::string>() : "";
  return fmt::format("<h1>{}</h1>\n<p class=\"lead\">{}</p>\n{}", escaped(run.name), line,
                     text.empty() ? "" : "<p class=\"lead\">" + escaped(text) + "</p>\n");
}

// Evaluates the run's best weights on the validation pictures, in the run's precision on this device, so that
// the bits are those of the run's own evaluation.
JudgedPass judge(const RunRecord& run, const ReportSource& source, Device device) {
  const TrainConfig config = read_train_config(run.config, (run.path / "config.json").string());
  const Computing computing{.device = device, .precision = precision_of(run)};
  const auto loader = validation_loader(source.dataset.validation,
                                        Pipeline(source.checkpoint.data.empty_dataset()), config, computing);
  const Model& own = source.checkpoint.model;
  const Model model =
      evaluation_dtype(run.task, computing.precision) == DType::bf16 ? copy_as(own, DType::bf16) : own;
  allow_tf32(computing.precision == Precision::tf32);
  JudgedPass pass;
  EvaluateOptions options = validation_options(config, computing);
  options.judgements = &pass.judgements;
  pass.evaluation = *evaluate(model, *loader, options);
  return pass;
}

std::string evaluated(const RunRecord& run, const ReportSource& source, Device device) {
  if (run.task == Task::diffuse) return samples_section(source.checkpoint, device);
  const JudgedPass pass = source.judged ? *source.judged : judge(run, source, device);
  return classes_section(pass.evaluation, source.dataset.class_names) +
         (run.task == Task::segment
              ? masks_section(source.checkpoint, pass.judgements, source.dataset, most_masks, device)
              : mistakes_section(pass.judgements, source.dataset, most_mistakes));
}

// A table of the run's events other than epochs, which the curves show: starts, stops, failures, the end.
std::string history(const RunRecord& run) {
  std::vector<std::vector<std::string>> rows;
  for (const Json& event : run.events) {
    const std::string name = as_text(event.value("event", Json("-")));
    if (name == "epoch") continue;
    std::string details;
    for (const auto& [key, value] : event.items())
      if (key != "event" && key != "time")
        details += (details.empty() ? "" : ", ") + key + " " + as_text(value);
    rows.push_back({escaped(as_text(event.value("time", Json("-")))), escaped(name), escaped(details)});
  }
  if (rows.empty()) return "";
  return heading("History") +
         cards({card("", "", html_table({"time, UTC", "event", "details"}, rows), true)});
}

std::string footer(const std::string& text) { return "<footer>" + escaped(text) + "</footer>\n"; }

std::string swatch(size_t run) {
  return fmt::format("<i class=\"swatch\" style=\"background:var(--c{})\"></i>", run % 8);
}

std::string comparison_table(std::span<const RunRecord> runs) {
  const Task task = runs.front().task;
  const std::string name = score_name(task);
  std::vector<std::vector<std::string>> rows;
  for (size_t r = 0; r < runs.size(); ++r) {
    const Json s = summary_of(runs[r]);
    const auto score_of = [&](const char* key) {
      return or_dash(s[key], [&](double v) { return score(task, v); });
    };
    rows.push_back({swatch(r) + escaped(runs[r].name), escaped(runs[r].model_name()),
                    escaped(runs[r].dataset()), s["epochs"].dump(), "<b>" + score_of("best") + "</b>",
                    s["best_epoch"].is_null() ? "-" : s["best_epoch"].dump(), score_of("last"),
                    or_dash(s["last_loss"], plain), or_dash(s["train_loss"], plain),
                    or_dash(s["images_per_second"], plain), or_dash(s["seconds"], time_text)});
  }
  return html_table({"run", "model", "data", "#epochs", "#best " + name, "#epoch", "#last " + name,
                     "#validation loss", "#training loss", "#images/s", "#time"},
                    rows);
}

}  // namespace

bool has_weights(const fs::path& run) {
  return fs::exists(run / "best.safetensors") || fs::exists(run / "last.safetensors");
}

std::string run_page(const RunRecord& run, const ReportSource* source, const std::string& missing,
                     Device device, int refresh) {
  std::string body = head_of(run, source) + figures(figures_of(run));
  if (!missing.empty()) body += "<p class=\"warn\">" + escaped(missing) + "</p>\n";
  for (const std::string& sentence : run.changed) body += "<p class=\"warn\">" + escaped(sentence) + "</p>\n";
  if (run.rows.empty()) body += "<p class=\"warn\">No epoch is finished yet.</p>\n";
  if (!run.rows.empty() || !run.steps.empty()) body += curves_section({&run, 1});
  body += watch_section(run);
  if (source) body += evaluated(run, *source, device);
  body += config_section(run) + history(run);
  if (source)
    body += footer("Classes and pictures: the validation pictures as " +
                   source->checkpoint.path.filename().string() + " sees them.");
  return page(run.name, body, refresh);
}

std::string compare_page(std::span<const RunRecord> runs) {
  std::string names;
  for (const RunRecord& run : runs) {
    check(run.task == runs.front().task, "report: ", runs.front().path.string(), " is judged by ",
          score_name(runs.front().task), ", ", run.path.string(), " by ", score_name(run.task),
          "; compare runs of one kind");
    names += (names.empty() ? "" : ", ") + run.name;
  }
  return page(
      names,
      fmt::format("<h1>{} runs</h1>\n", runs.size()) + heading("Figures") +
          cards({card("", "", "<div style=\"overflow:auto\">" + comparison_table(runs) + "</div>", true)}) +
          curves_section(runs) + config_differences(runs));
}

fs::path write_report(const fs::path& run, const Dataset& dataset, Device device, const JudgedPass* judged) {
  const RunRecord record = read_run(run);
  const fs::path path = run / "report.html";
  if (!has_weights(run)) {
    write_file_atomically(path, run_page(record, nullptr, "The run has no weights yet.", device));
    return path;
  }
  const ReportSource source{read_checkpoint(run, device), dataset, judged};
  write_file_atomically(path, run_page(record, &source, "", device));
  return path;
}

}  // namespace tessera
