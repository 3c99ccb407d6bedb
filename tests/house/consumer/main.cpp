#include <engine/core/tensor.h>

// Stands for somebody else's program: it knows the installed package alone.
int main() {
  const auto ones = tessera::Tensor::full({2, 3}, 1.0);
  return ones.values().size() == 6 && ones.shape().text() == "[2, 3]" ? 0 : 1;
}
