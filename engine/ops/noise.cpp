#include "engine/ops/noise.h"

#include "engine/core/dispatch.h"
#include "engine/ops/noise_kernels.h"

namespace tessera {

Tensor normal_noise(const Shape& shape, uint64_t key, DType dtype, Device device) {
  const Tensor noise = Tensor::empty(shape, dtype, device);
  dispatch(noise, "normal_noise", [&]<class Dev, class T>() {
    NoiseKernels<Dev>::template fill<T>(noise.elements(), key, noise.data<T>());
  });
  return noise;
}

}  // namespace tessera
