#pragma once

namespace tessera {

/// What a model learns: the class of an image, the noise in an image (a diffusion model), or the class of
/// each pixel.
enum class Task { classify, diffuse, segment };

}  // namespace tessera
