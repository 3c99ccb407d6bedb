#include "engine/optim/clip.h"

#include <cmath>
#include <limits>

#include "engine/core/dispatch.h"
#include "engine/optim/clip_kernels.h"

namespace tessera {

namespace {

std::vector<Tensor> gradients_of(const std::vector<Tensor>& parameters) {
  std::vector<Tensor> gradients;
  for (const Tensor& p : parameters)
    if (const Tensor g = p.grad(); g.defined()) gradients.push_back(g);
  return gradients;
}

template <class T> std::vector<ClipItem<T>> items_of(const std::vector<Tensor>& gradients) {
  std::vector<ClipItem<T>> items;
  for (const Tensor& g : gradients) items.push_back({g.elements(), g.data<T>()});
  return items;
}

double norm_of(const std::vector<Tensor>& gradients) {
  double squares = 0;
  if (gradients.empty()) return 0;
  dispatch(gradients.front(), "clip", [&]<class Dev, class T>() {
    const auto items = items_of<T>(gradients);
    squares = ClipKernels<Dev>::template squares<T>(items.data(), static_cast<int64_t>(items.size()));
  });
  return std::sqrt(squares);
}

}  // namespace

double gradient_norm(const std::vector<Tensor>& parameters) { return norm_of(gradients_of(parameters)); }

void clip_on_device(const std::vector<Tensor>& parameters, double max_norm, double largest,
                    const Tensor& norm) {
  const std::vector<Tensor> gradients = gradients_of(parameters);
  if (gradients.empty()) return norm.rows(0, 2).fill(0);
  dispatch(gradients.front(), "clip", [&]<class Dev, class T>() {
    const auto items = items_of<T>(gradients);
    ClipKernels<Dev>::template clip<T>(items.data(), static_cast<int64_t>(items.size()), max_norm, largest,
                                       norm.data<double>());
  });
}

void norm_on_device(const std::vector<Tensor>& tensors, const Tensor& norm) {
  if (tensors.empty()) return norm.fill(0);
  dispatch(tensors.front(), "norm", [&]<class Dev, class T>() {
    const auto items = items_of<T>(tensors);
    ClipKernels<Dev>::template clip<T>(items.data(), static_cast<int64_t>(items.size()), 0,
                                       std::numeric_limits<double>::infinity(), norm.data<double>());
  });
}

double clip_by_norm(const std::vector<Tensor>& parameters, double max_norm) {
  check(max_norm > 0, "clip: the largest norm is ", max_norm, ", wanted more than 0");
  const std::vector<Tensor> gradients = gradients_of(parameters);
  const double norm = norm_of(gradients);
  if (!std::isfinite(norm) || norm <= max_norm) return norm;
  dispatch(gradients.front(), "clip", [&]<class Dev, class T>() {
    const auto items = items_of<T>(gradients);
    ClipKernels<Dev>::template scale<T>(items.data(), static_cast<int64_t>(items.size()), max_norm / norm);
  });
  return norm;
}

}  // namespace tessera
