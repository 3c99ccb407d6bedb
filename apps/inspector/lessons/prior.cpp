// Lesson 8: the spatial prior of SP-ViT's attention (SP-SA; Zhou et al., 2022). The score of a query and a
// key is multiplied by Omega, which a small network computes from where the key lies, seen from the query.
//
// Four patches lie in a square, 0 1 above 2 3, so there are nine offsets (dx, dy) from query to key and
// sixteen pairs. The network has chosen numbers: Omega = 1 + relu(dx + 1/2) - relu(dy + 1/2) favours keys to
// the right and above. All products q k^T are 1 here, so the scores are Omega itself.

#include "apps/inspector/lessons/lessons.h"
#include "engine/ops/activations.h"
#include "engine/ops/elementwise.h"
#include "engine/ops/linear.h"
#include "engine/ops/matmul.h"
#include "engine/ops/reduce.h"
#include "engine/ops/shape.h"
#include "engine/ops/softmax.h"

namespace tessera {

namespace {

// The offset of each pair, its row in the table of offsets: [query, key].
Tensor offset_of_pairs() {
  return Tensor::from(std::vector<int64_t>{4, 5, 7, 8,  //
                                           3, 4, 6, 7,  //
                                           1, 2, 4, 5,  //
                                           0, 1, 3, 4},
                      {4, 4});
}

PassRecord run(Numbers& numbers) {
  const Tensor products = numbers.leaf("products", {4, 4}, {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1});
  const Tensor offsets = numbers.constant("offsets", {9, 2},
                                          {-1, -1, 0, -1, 1, -1,  // (dx, dy), above
                                           -1, 0, 0, 0, 1, 0,     // beside
                                           -1, 1, 0, 1, 1, 1});   // below
  const Tensor w1 = numbers.leaf("fc1.weight", {2, 2},
                                 {1, 0,  //
                                  0, 1});
  const Tensor b1 = numbers.leaf("fc1.bias", {2}, {0.5, 0.5});
  const Tensor w2 = numbers.leaf("fc2.weight", {1, 2}, {1, -1});
  const Tensor b2 = numbers.leaf("fc2.bias", {1}, {1});
  const Tensor v = numbers.constant("v", {4, 1}, {4, 0, -4, 0});

  Tape tape;
  tape.keep_all();
  Tensor scores = products;
  if (numbers.has("prior")) {
    const Tensor hidden = named("hidden", linear(offsets, w1, b1));
    const Tensor features = named("features", relu(hidden));             // [9, 2]
    const Tensor table = named("table", linear(features, w2, b2));       // [9, 1]: Omega of each offset
    const Tensor omega = gather(table.reshape({9}), offset_of_pairs());  // [4, 4]: Omega of each pair
    scores = named("scores", products * named("omega", omega));
  }
  const Tensor p = named("probabilities", softmax(scores));
  const Tensor y = named("y", matmul(p, v));
  const Tensor loss = sum(y);
  tape.backward(loss);
  return PassRecord(tape, numbers.with({{"loss", loss}}));
}

}  // namespace

const Lesson prior_lesson = {
    .name = "prior",
    .title = "SP-SA: a prior that learns where to look",
    .look_at =
        "Nine numbers in the table make all sixteen of omega: every pair with the same offset has the same "
        "Omega. Backward, the gradient of a table's number is the sum over its pairs, four of them for the "
        "offset (0, 0). From there two linear layers hand it on to the weights of the network.",
    .question =
        "The pair of query 0 and key 2 has Omega = 0. Its product gets no gradient, yet its Omega does. Why?",
    .answer =
        "The score is a product of both, and the gradient of each factor has the other as its slope. Omega = "
        "0 silences q k^T; but the product is 1, so Omega hears of the loss and training can open the pair.",
    .run = run,
    .term = {"prior", "spatial prior"},
};

}  // namespace tessera
