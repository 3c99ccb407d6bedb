#include "engine/ops/images.h"

#include "engine/autograd/tape.h"
#include "engine/core/error.h"

namespace tessera {

void check_images(const char* op, const Tensor& images, int64_t batch) {
  check(images.rank() == 1 && images.dtype() == DType::i64 && images.device() == Device::cpu &&
            images.elements() > 0,
        op, ": images ", images.dtype(), " ", images.shape(), ", a list of i64 on the host is wanted");
  int64_t last = -1;
  for (const int64_t i : images.integers()) {
    check(i > last && i < batch, op, ": image ", i, " follows ", last, " in a batch of ", batch,
          "; images in rising order are wanted");
    last = i;
  }
}

bool has_image_kernels(const Tensor& x) { return x.device() == Device::cpu && !tape_keeps_all(); }

ImageList list_of(const Tensor& images) {
  if (!images.defined()) return {};
  return {images.data<int64_t>(), images.elements()};
}

}  // namespace tessera
