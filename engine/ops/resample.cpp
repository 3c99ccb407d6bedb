#include "engine/ops/resample.h"

#include <algorithm>
#include <cmath>

#include "engine/autograd/tape.h"
#include "engine/core/dispatch.h"
#include "engine/ops/catalog.h"
#include "engine/ops/input_gradient.h"
#include "engine/ops/resample_kernels.h"

namespace tessera {

namespace {

// The taps of an axis as tensors on a device, for the kernels of both passes.
struct TapTensors {
  Tensor first, from, weight;
  int64_t inputs, outputs;

  TapTensors(const Taps& taps, Device device)
      : inputs(taps.input_size), outputs(static_cast<int64_t>(taps.of.size())) {
    std::vector<int64_t> starts{0}, places;
    std::vector<double> weights;
    for (const auto& of_one : taps.of) {
      for (const Taps::Tap& tap : of_one) {
        places.push_back(tap.from);
        weights.push_back(tap.weight);
      }
      starts.push_back(static_cast<int64_t>(places.size()));
    }
    const auto count = static_cast<int64_t>(places.size());
    first = Tensor::from(starts, {outputs + 1}).to(device);
    from = Tensor::from(places, {count}).to(device);
    weight = Tensor::from(weights, {count}, DType::f64).to(device);
  }

  // The weight of each input entry in each output entry. [outputs, inputs]
  Tensor matrix() const {
    std::vector<double> entries(static_cast<size_t>(outputs * inputs));
    const std::vector<int64_t> starts = first.integers(), places = from.integers();
    const std::vector<double> weights = weight.values();
    for (int64_t i = 0; i < outputs; ++i)
      for (auto k = static_cast<size_t>(starts[static_cast<size_t>(i)]);
           k < static_cast<size_t>(starts[static_cast<size_t>(i) + 1]); ++k)
        entries[static_cast<size_t>(i * inputs + places[k])] += weights[k];
    return Tensor::from(entries, {outputs, inputs}, DType::f64);
  }

  FlatTaps flat() const {
    return {inputs, outputs, first.data<int64_t>(), from.data<int64_t>(), weight.data<double>()};
  }
};

int64_t inside(int64_t i, int64_t size) { return std::clamp<int64_t>(i, 0, size - 1); }

void check_sizes(int64_t input, int64_t output) {
  check(input > 0 && output > 0, "resample: from ", input, " to ", output, " entries; both must be positive");
}

void check_taps(const Taps& taps) {
  for (const auto& of_one : taps.of)
    for (const Taps::Tap& tap : of_one)
      check(tap.from >= 0 && tap.from < taps.input_size, "resample: a tap from entry ", tap.from, " of ",
            taps.input_size);
}

// Keys' cubic convolution at distance x, a = -0.75.
double cubic(double x) {
  constexpr double a = -0.75;
  x = std::abs(x);
  if (x <= 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
  return x < 2 ? ((x - 5) * x + 8) * x * a - 4 * a : 0;
}

}  // namespace

Taps bilinear_taps(int64_t input, int64_t output) {
  check_sizes(input, output);
  Taps taps{{}, input};
  const double scale = static_cast<double>(input) / static_cast<double>(output);
  for (int64_t i = 0; i < output; ++i) {
    const double at = std::max(0.0, (static_cast<double>(i) + 0.5) * scale - 0.5);
    const auto low = std::min(static_cast<int64_t>(at), input - 1);
    const double part = at - static_cast<double>(low);
    taps.of.push_back({{low, 1 - part}, {inside(low + 1, input), part}});
  }
  return taps;
}

Taps bicubic_taps(int64_t input, int64_t output) {
  check_sizes(input, output);
  Taps taps{{}, input};
  const double scale = static_cast<double>(input) / static_cast<double>(output);
  for (int64_t i = 0; i < output; ++i) {
    const double at = (static_cast<double>(i) + 0.5) * scale - 0.5;
    const double floor = std::floor(at);
    std::vector<Taps::Tap> four;
    for (int64_t k = -1; k <= 2; ++k)
      four.push_back(
          {inside(static_cast<int64_t>(floor) + k, input), cubic(at - floor - static_cast<double>(k))});
    taps.of.push_back(four);
  }
  return taps;
}

Taps average_taps(int64_t input, int64_t output) {
  check_sizes(input, output);
  Taps taps{{}, input};
  for (int64_t k = 0; k < output; ++k) {
    const int64_t first = k * input / output, last = ((k + 1) * input + output - 1) / output;
    std::vector<Taps::Tap> cell;
    for (int64_t i = first; i < last; ++i) cell.push_back({i, 1.0 / static_cast<double>(last - first)});
    taps.of.push_back(cell);
  }
  return taps;
}

Tensor resample(const Tensor& x, const Taps& vertical, const Taps& horizontal) {
  check(x.rank() == 4 && x.dim(1) == vertical.input_size && x.dim(2) == horizontal.input_size,
        "resample: input ", x.shape(), " for taps of a map [B, ", vertical.input_size, ", ",
        horizontal.input_size, ", C]");
  check_taps(vertical);
  check_taps(horizontal);
  const TapTensors rows(vertical, x.device()), columns(horizontal, x.device());
  const int64_t images = x.dim(0), channels = x.dim(3);
  const Tensor y = Tensor::empty({images, rows.outputs, columns.outputs, channels}, x.dtype(), x.device());
  dispatch(x, "resample", [&]<class Dev, class T>() {
    ResampleKernels<Dev>::template forward<T>(images, channels, rows.flat(), columns.flat(), x.data<T>(),
                                              y.data<T>());
  });
  const auto backward = [=](Gradients& g) {
    const InputGradient dx(g, 0);
    dispatch(g.dy(), "resample", [&]<class Dev, class T>() {
      ResampleKernels<Dev>::template backward<T>(images, channels, rows.flat(), columns.flat(),
                                                 g.dy().data<T>(), dx.target<T>());
    });
  };
  const Tensor made = record("resample", y, {x}, backward);
  describe_step(made, [&] { return Attributes{{"rows", rows.matrix()}, {"columns", columns.matrix()}}; });
  return made;
}

}  // namespace tessera
