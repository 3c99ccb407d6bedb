#pragma once

#include <cstdint>

namespace CLI {
class App;
}

namespace tessera {

// What a training step computes in; weights, gradients' norm and the optimizer are f32 in any case. tf32: a
// GPU's products round their factors to 10 bits. bf16: activations, products and gradients are bf16, sums in
// f32.
enum class Precision : uint8_t { f32, tf32, bf16 };

// --precision f32|tf32|bf16. Fails for any other.
void add_precision(CLI::App& command, Precision& precision);

}  // namespace tessera
