// The README's first program. It knows the installed package alone, as somebody else's program would.

#include <tessera/engine.h>

#include <iostream>

using namespace tessera;

int main() {
  Tensor w = Tensor::from({0.1, -0.2, 0.3, 0.4}, {2, 2}).require_grad();
  Tensor x = Tensor::from({1, 2}, {1, 2});
  Tape tape;        // records while it lives
  tape.keep_all();  // and keeps the gradient of every value on the way
  tape.backward(mean(gelu(matmul(x, w))));
  for (size_t i = 0; i < tape.steps().size(); ++i)
    std::cout << tape.steps()[i].op->forward << "   " << tape.steps()[i].op->backward
              << "   dy = " << tape.gradient_of_step(i).values()[0] << "\n";
  for (const double dw : w.grad().values()) std::cout << dw << " ";
}
