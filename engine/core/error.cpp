#include "engine/core/error.h"

#include <algorithm>
#include <numeric>

namespace tessera {

namespace {

// Levenshtein's distance, one row at a time.
size_t edits(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t replaced = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, replaced});
    }
  }
  return row.back();
}

}  // namespace

std::string nearest(std::string_view given, const std::vector<std::string>& known) {
  std::string best;
  size_t fewest = std::max<size_t>(2, given.size() / 3) + 1;
  for (const std::string& candidate : known) {
    const size_t distance = edits(given, candidate);
    if (distance < fewest) {
      fewest = distance;
      best = candidate;
    }
  }
  return best;
}

std::string did_you_mean(std::string_view given, const std::vector<std::string>& known) {
  const std::string best = nearest(given, known);
  return best.empty() ? "" : "; did you mean '" + best + "'?";
}

}  // namespace tessera
