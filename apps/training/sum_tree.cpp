#include "apps/training/sum_tree.h"

namespace tessera {

std::vector<Branch> branches_of(Share share) {
  std::vector<Branch> branches;
  for (int64_t part = share.first; part < share.end(); ++part) {
    Branch last{part, 1};
    for (; !branches.empty() && joins(branches.back(), last); branches.pop_back())
      last = {branches.back().first, 2 * last.count};
    branches.push_back(last);
  }
  return branches;
}

std::vector<std::pair<size_t, size_t>> additions_of(const std::vector<Branch>& branches) {
  std::vector<std::pair<size_t, size_t>> additions;
  std::vector<std::pair<Branch, size_t>> left;  // with their places
  const auto join_last = [&] {
    const auto [second, from] = left.back();
    left.pop_back();
    auto& [first, into] = left.back();
    additions.emplace_back(into, from);
    first.count += second.count;
  };
  for (size_t place = 0; place < branches.size(); ++place) {
    left.emplace_back(branches[place], place);
    while (left.size() > 1 && joins(left[left.size() - 2].first, left.back().first)) join_last();
  }
  while (left.size() > 1) join_last();
  return additions;
}

}  // namespace tessera
