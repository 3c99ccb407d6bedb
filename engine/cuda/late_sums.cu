#include "engine/cuda/late_sums.h"

#include <algorithm>
#include <array>
#include <span>
#include <tuple>
#include <vector>

#include "engine/core/dispatch.h"
#include "engine/cuda/reduce.h"

namespace tessera {

namespace {

template <class T> struct LateSum {
  const Wide<T>* parts;
  T* y;
  int64_t n, count;
  bool add;
};

constexpr size_t most_at_once = 48;  // of 40 bytes, in the 4 KB that a kernel's arguments may take
template <class T> struct LateSums { LateSum<T> at[most_at_once]; };

// Block (x, y) of (warp, part_detail::lanes) threads adds entries [32 x, 32 x + 32) of sum y.
template <class T> __global__ void __launch_bounds__(warp* part_detail::lanes) sum_many(LateSums<T> sums) {
  wait_for_previous_kernel();
  const LateSum<T> one = sums.at[blockIdx.y];
  part_detail::add_up(one.n, one.count, Wide<T>(1), PartSum<T>{one.parts, one.y, one.add});
}

// The sums that this thread has put off, and what keeps their parts.
template <class T> struct Waiting {
  std::vector<LateSum<T>> sums;
  std::vector<LateParts<T>> parts;

  bool has(const void* y) const {
    return std::any_of(sums.begin(), sums.end(), [y](const LateSum<T>& one) { return one.y == y; });
  }

  void launch_all() {
    for (size_t first = 0; first < sums.size(); first += most_at_once) {
      const auto some = std::span(sums).subspan(first, std::min(most_at_once, sums.size() - first));
      LateSums<T> now{};
      std::copy(some.begin(), some.end(), now.at);
      int64_t widest = 0;
      for (const LateSum<T>& one : some) widest = std::max(widest, one.n);
      const int64_t blocks = std::min<int64_t>((widest + warp - 1) / warp, 1 << 20);
      launch(sum_many<T>,
             LaunchGrid{dim3(static_cast<unsigned>(blocks), static_cast<unsigned>(some.size())),
                        dim3(warp, part_detail::lanes)},
             now);
    }
    sums.clear();
    parts.clear();
  }
};

thread_local std::tuple<Waiting<float>, Waiting<double>, Waiting<bf16>> waiting;
thread_local int backward_passes = 0;  // that run on this thread, one within the other

void launch_all() {
  std::apply([](auto&... of) { (of.launch_all(), ...); }, waiting);
}

}  // namespace

template <class T> void sum_late(int64_t n, int64_t count, const LateParts<T>& parts, T* y, bool add) {
  if (n == 0) return;
  Waiting<T>& own = std::get<Waiting<T>>(waiting);
  own.sums.push_back({parts->data(), y, n, count, add});
  own.parts.push_back(parts);
  if (backward_passes == 0) launch_all();
}
TESSERA_FOR_FLOATS(sum_late)

void begin_backward() { ++backward_passes; }

void before_reading(const void* gradient) {
  if (std::apply([&](const auto&... of) { return (of.has(gradient) || ...); }, waiting)) launch_all();
}

void end_backward() {
  --backward_passes;
  launch_all();
}

}  // namespace tessera
