// A graph of one's own as a page: every value, every gradient, and a proof of the largest ones. Prints the
// gradient of w, which is read back from the page.

#include <tessera/engine.h>
#include <tessera/inspector.h>

#include <iostream>

using namespace tessera;

int main() {
  const Tensor x = Tensor::from({1, 2}, {1, 2}, DType::f64);
  const Tensor w = Tensor::from({0.1, -0.2, 0.3, 0.4}, {2, 2}, DType::f64).require_grad();
  const auto program = [&] {
    const Tensor y = gelu(matmul(x, w));
    name_value(y, "hidden");
    return mean(y);
  };
  Tape tape;
  tape.keep_all();
  const Tensor loss = program();
  tape.backward(loss);
  write_page("tape.html", tape, loss,
             {.title = "my graph", .names = {{"x", x}, {"w", w}}, .loss_again = program});
  std::cout.precision(17);
  for (const double dw : w.grad().values()) std::cout << dw << " ";
}
