#include "apps/reporting/classes_section.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <numeric>

#include "apps/reporting/chart.h"
#include "apps/reporting/class_table.h"
#include "apps/reporting/html.h"
#include "data/formats/resize.h"

namespace tessera {

namespace {

constexpr int64_t widest_matrix = 30;  // classes; a larger matrix is drawn as a picture without numbers
constexpr size_t most_pairs = 20;
constexpr int largest_side = 160;  // pixels of a thumbnail

std::string share_text(const Json& share) {
  return share.is_null() ? "-" : number_text(share.get<double>(), NumberStyle::percent);
}

double share_of(const Json& share) { return share.is_null() ? 0 : share.get<double>(); }

// Sorts rows by `key`, the smallest first, classes without a value last.
std::vector<Json> sorted_by(const Json& rows, const char* key) {
  std::vector<Json> sorted(rows.begin(), rows.end());
  std::stable_sort(sorted.begin(), sorted.end(), [&](const Json& a, const Json& b) {
    return (a[key].is_null() ? 2 : a[key].get<double>()) < (b[key].is_null() ? 2 : b[key].get<double>());
  });
  return sorted;
}

// The class that pictures of class k are most often mistaken for, with their number.
std::string most_mistaken_for(const Evaluation& e, int64_t k, const std::vector<std::string>& names) {
  int64_t most = -1;
  for (int64_t j = 0; j < e.classes; ++j)
    if (j != k && e.at(k, j) > (most < 0 ? 0 : e.at(k, most))) most = j;
  return most < 0 ? "" : fmt::format("{} ({})", escaped(names[static_cast<size_t>(most)]), e.at(k, most));
}

std::string class_card(const Evaluation& e, const std::vector<std::string>& names) {
  std::vector<std::vector<std::string>> rows;
  if (e.task == Task::segment) {
    for (const Json& row : sorted_by(iou_rows(e, names), "iou"))
      rows.push_back(
          {escaped(row["name"].get<std::string>()), bar_cell(share_of(row["iou"]), share_text(row["iou"]))});
    return card("Classes", "intersection over union, the lowest first",
                "<div class=\"scroll\">" + html_table({"class", "IoU"}, rows) + "</div>", true);
  }
  for (const Json& row : sorted_by(class_rows(e, names), "recall"))
    rows.push_back({escaped(row["name"].get<std::string>()), row["images"].dump(),
                    bar_cell(share_of(row["recall"]), share_text(row["recall"])),
                    share_text(row["precision"]), most_mistaken_for(e, row["class"], names)});
  return card(
      "Classes", "the lowest accuracy first",
      "<div class=\"scroll\">" +
          html_table({"class", "#images", "accuracy", "#precision", "most often mistaken for"}, rows) +
          "</div>");
}

int64_t images_of(const Evaluation& e, int64_t label) {
  const auto row = e.confusion.begin() + label * e.classes;
  return std::accumulate(row, row + e.classes, int64_t{0});
}

double share_at(const Evaluation& e, int64_t label, int64_t predicted) {
  const int64_t all = images_of(e, label);
  return all > 0 ? static_cast<double>(e.at(label, predicted)) / static_cast<double>(all) : 0;
}

std::string matrix_table(const Evaluation& e, const std::vector<std::string>& names) {
  const auto name = [&](int64_t k) { return escaped(names[static_cast<size_t>(k)]); };
  const int64_t side = std::clamp<int64_t>(480 / e.classes, 20, 44);
  std::string out = "<div style=\"overflow:auto\"><table class=\"matrix\"><tr><th></th>";
  for (int64_t j = 0; j < e.classes; ++j) out += fmt::format("<th class=\"col\">{}</th>", name(j));
  out += "</tr>\n";
  for (int64_t k = 0; k < e.classes; ++k) {
    out += fmt::format("<tr><th class=\"row\" title=\"{0}\">{0}</th>", name(k));
    for (int64_t j = 0; j < e.classes; ++j) {
      const double share = share_at(e, k, j);
      out += fmt::format(
          "<td style=\"width:{0}px;height:{0}px;background:rgba(var(--{1}),{2:.3f})\" "
          "title=\"{3} mistaken for {4}: {5}, {6}\">{7}</td>",
          side, j == k ? "heat" : "wrong", e.at(k, j) > 0 ? 0.06 + 0.8 * std::sqrt(share) : 0.04, name(k),
          name(j), e.at(k, j), number_text(share, NumberStyle::percent),
          e.at(k, j) > 0 ? std::to_string(e.at(k, j)) : "");
    }
    out += "</tr>\n";
  }
  return out + "</table></div>";
}

// One pixel for each pair of classes, darker for a larger share of the label's pictures: blue on the
// diagonal, red beside it.
Image matrix_picture(const Evaluation& e) {
  const auto side = static_cast<int>(e.classes);
  Image image(side, side);
  for (int y = 0; y < side; ++y)
    for (int x = 0; x < side; ++x) {
      const double heat = std::sqrt(share_at(e, y, x));
      const double ink[] = {x == y ? 30.0 : 176, x == y ? 84.0 : 38, x == y ? 158.0 : 30};
      for (int c = 0; c < 3; ++c)
        image.at(y, x)[c] = static_cast<uint8_t>(std::lround(248 + (ink[c] - 248) * heat));
    }
  return image;
}

std::string matrix_card(const Evaluation& e, const std::vector<std::string>& names) {
  if (e.classes <= widest_matrix)
    return card("Confusion", "labels down, predictions across; images", matrix_table(e, names));
  const auto times = std::max<int64_t>(1, 520 / e.classes);
  return card("Confusion",
              "labels down, predictions across, by class number; darker: a larger share of the label",
              picture(matrix_picture(e), static_cast<int>(times * e.classes), "confusion matrix"));
}

std::string pairs_card(const Evaluation& e, const std::vector<std::string>& names) {
  std::vector<std::vector<std::string>> rows;
  for (const auto& [images, label, predicted] : most_confused(e, most_pairs)) {
    const double share = share_at(e, label, predicted);
    rows.push_back({escaped(names[static_cast<size_t>(label)]),
                    escaped(names[static_cast<size_t>(predicted)]), std::to_string(images),
                    bar_cell(share, number_text(share, NumberStyle::percent))});
  }
  if (rows.empty()) return "";
  return card("Most often confused", "",
              "<div class=\"scroll\">" +
                  html_table({"label", "mistaken for", "#images", "share of the label"}, rows) + "</div>",
              true);
}

}  // namespace

std::string classes_section(const Evaluation& e, const std::vector<std::string>& names) {
  if (e.task == Task::segment) return heading("Classes") + cards({class_card(e, names)});
  return heading("Classes") + cards({class_card(e, names), matrix_card(e, names), pairs_card(e, names)});
}

Image thumbnail(Image image) {
  const int side = std::max(image.height, image.width);
  if (side <= largest_side) return image;
  const auto smaller = [&](int length) { return std::max(1, length * largest_side / side); };
  return resize_bilinear(image, smaller(image.height), smaller(image.width));
}

std::vector<Judgement> worst_judgements(std::vector<Judgement> judgements, Task task, size_t count) {
  if (task == Task::classify) std::erase_if(judgements, [](const Judgement& j) { return j.right == 1; });
  std::stable_sort(judgements.begin(), judgements.end(), [&](const Judgement& a, const Judgement& b) {
    return task == Task::classify ? a.confidence > b.confidence : a.right < b.right;
  });
  judgements.resize(std::min(judgements.size(), count));
  return judgements;
}

std::string mistakes_section(const std::vector<Judgement>& judgements, const Dataset& dataset, size_t count) {
  const auto name = [&](int64_t k) { return escaped(dataset.class_names[static_cast<size_t>(k)]); };
  std::string out;
  Image image;
  for (const Judgement& j : worst_judgements(judgements, Task::classify, count)) {
    dataset.validation->image(j.picture, image);
    out += fmt::format(
        "<figure title=\"{}\">{}<figcaption><b>{}</b><br><span class=\"bad\">{} "
        "{}</span></figcaption></figure>\n",
        escaped(dataset.validation->source(j.picture)), picture(thumbnail(image), 128, "mistake"),
        name(j.label), name(j.predicted), number_text(j.confidence, NumberStyle::percent));
  }
  if (out.empty())
    return heading("Worst mistakes") + "<p class=\"note\">None: every picture is classified right.</p>";
  return heading("Worst mistakes") +
         cards({card("Sure and wrong", "the label, and below it what was predicted with which confidence",
                     "<div class=\"pictures\">" + out + "</div>", true)});
}

}  // namespace tessera
