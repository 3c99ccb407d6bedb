#include "engine/ops/patches.h"

#include "engine/autograd/tape.h"
#include "engine/core/dispatch.h"
#include "engine/ops/catalog.h"
#include "engine/ops/input_gradient.h"
#include "engine/ops/patches_kernels.h"

namespace tessera {

namespace {

void check_image(const Tensor& image, const char* what) {
  check(image.rank() == 4, what, ": ", image.shape(), " is no batch of images [B, C, H, W]");
}

void check_cut(const Tensor& image, int64_t size, const char* what) {
  check(size > 0 && image.dim(2) % size == 0 && image.dim(3) % size == 0, what, ": the image ", image.shape(),
        " cannot be cut into patches of ", size, " x ", size,
        " pixels; height and width are to be multiples");
}

void check_shift(int64_t shift, const char* what) {
  check(shift >= 0, what, ": a shift of ", shift, " pixels is negative");
}

ImageSize size_of(const Tensor& image) { return {image.dim(0), image.dim(1), image.dim(2), image.dim(3)}; }

Shifts shifts_of(Directions directions, int64_t shift) {
  constexpr std::array<Shifts::Offset, 8> steps{
      {{0, -1}, {0, 1}, {-1, 0}, {1, 0}, {-1, -1}, {-1, 1}, {1, -1}, {1, 1}}};  // (dy, dx)
  const size_t first = directions == Directions::diagonal ? 4 : 0,
               last = directions == Directions::cardinal ? 4 : 8;
  Shifts shifts;
  for (size_t d = first; d < last; ++d)
    shifts.offset[static_cast<size_t>(shifts.count++)] = {shift * steps[d].dy, shift * steps[d].dx};
  return shifts;
}

// dy, dx of each copy, one after another; the image itself is the first, 0, 0.
std::vector<int64_t> offsets_of(const Shifts& shifts) {
  std::vector<int64_t> offsets;
  for (int i = 0; i < shifts.count; ++i) {
    offsets.push_back(shifts.offset[static_cast<size_t>(i)].dy);
    offsets.push_back(shifts.offset[static_cast<size_t>(i)].dx);
  }
  return offsets;
}

// The patches of an image and its copies, with the backward pass recorded under this name.
Tensor cut_copies(OpName name, const Tensor& image, int64_t size, const Shifts& shifts) {
  const PatchPlaces places(size_of(image), shifts.count, size);
  const Tensor y =
      Tensor::empty({image.dim(0), places.high * places.wide, shifts.count * image.dim(1) * size * size},
                    image.dtype(), image.device());
  dispatch(image, name->name.data(), [&]<class Dev, class T>() {
    ShiftedPatchKernels<Dev>::template forward<T>(places, shifts, image.data<T>(), y.data<T>());
  });
  const auto backward = [name, places, shifts](Gradients& g) {
    const InputGradient dx(g, 0);
    dispatch(g.dy(), name->name.data(), [&]<class Dev, class T>() {
      ShiftedPatchKernels<Dev>::template backward<T>(places, shifts, g.dy().data<T>(), dx.target<T>());
    });
  };
  return record(name, y, {image}, backward);
}

}  // namespace

Tensor patches(const Tensor& image, int64_t size) {
  check_image(image, "patches");
  check_cut(image, size, "patches");
  const Tensor made = cut_copies("patches", image, size, Shifts());
  describe_step(made, [&] { return Attributes{{"size", static_cast<double>(size)}}; });
  return made;
}

Tensor shifted_copies(const Tensor& image, Directions directions, int64_t shift) {
  check_image(image, "shifted_copies");
  check_shift(shift, "shifted_copies");
  const ImageSize size = size_of(image);
  const Shifts shifts = shifts_of(directions, shift);
  const Tensor y =
      Tensor::empty(image.shape().with(1, size.channels * shifts.count), image.dtype(), image.device());
  dispatch(image, "shifted_copies", [&]<class Dev, class T>() {
    ShiftKernels<Dev>::template forward<T>(size, shifts, image.data<T>(), y.data<T>());
  });
  const auto backward = [size, shifts](Gradients& g) {
    const InputGradient dx(g, 0);
    dispatch(g.dy(), "shifted_copies", [&]<class Dev, class T>() {
      ShiftKernels<Dev>::template backward<T>(size, shifts, g.dy().data<T>(), dx.target<T>());
    });
  };
  const Tensor made = record("shifted_copies", y, {image}, backward);
  describe_step(made, [&] { return Attributes{{"offsets", offsets_of(shifts)}}; });
  return made;
}

Tensor shifted_patches(const Tensor& image, int64_t size, Directions directions, int64_t shift) {
  check_image(image, "shifted_patches");
  check_cut(image, size, "shifted_patches");
  check_shift(shift, "shifted_patches");
  const Shifts shifts = shifts_of(directions, shift);
  const Tensor made = cut_copies("shifted_patches", image, size, shifts);
  describe_step(made, [&] {
    return Attributes{{"size", static_cast<double>(size)}, {"offsets", offsets_of(shifts)}};
  });
  return made;
}

}  // namespace tessera
