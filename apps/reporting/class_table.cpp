#include "apps/reporting/class_table.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

namespace tessera {

Json class_rows(const Evaluation& e, const std::vector<std::string>& names) {
  Json rows = Json::array();
  for (int64_t k = 0; k < e.classes; ++k) {
    int64_t images = 0, predicted = 0;
    for (int64_t j = 0; j < e.classes; ++j) {
      images += e.at(k, j);
      predicted += e.at(j, k);
    }
    const auto ratio = [&](int64_t of) {
      return of > 0 ? Json(static_cast<double>(e.at(k, k)) / static_cast<double>(of)) : Json();
    };
    rows.push_back({{"class", k},
                    {"name", names[static_cast<size_t>(k)]},
                    {"images", images},
                    {"predicted", predicted},
                    {"recall", ratio(images)},
                    {"precision", ratio(predicted)}});
  }
  return rows;
}

Json iou_rows(const Evaluation& e, const std::vector<std::string>& names) {
  Json rows = Json::array();
  const std::vector<double> iou = e.pixels->scores().iou;
  for (size_t k = 0; k < iou.size(); ++k)
    rows.push_back({{"class", k}, {"name", names[k]}, {"iou", std::isnan(iou[k]) ? Json() : Json(iou[k])}});
  return rows;
}

Json confusion_rows(const Evaluation& e) {
  Json rows = Json::array();
  for (int64_t k = 0; k < e.classes; ++k)
    rows.push_back(
        std::vector<int64_t>(e.confusion.begin() + k * e.classes, e.confusion.begin() + (k + 1) * e.classes));
  return rows;
}

std::vector<Confused> most_confused(const Evaluation& e, size_t count) {
  std::vector<Confused> pairs;
  for (int64_t k = 0; k < e.classes; ++k)
    for (int64_t j = 0; j < e.classes; ++j)
      if (j != k && e.at(k, j) > 0) pairs.push_back({e.at(k, j), k, j});
  std::stable_sort(pairs.begin(), pairs.end(),
                   [](const Confused& a, const Confused& b) { return a.images > b.images; });
  pairs.resize(std::min(pairs.size(), count));
  return pairs;
}

}  // namespace tessera
