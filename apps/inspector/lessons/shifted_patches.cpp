// Lesson 10: shifted patch tokenization (SPT; Lee et al., 2021). The image is joined by four copies, each
// moved by half a patch along a diagonal, before it is cut into patches: a token then sees beyond its own
// patch.
//
// An image of 2 x 4 pixels has two patches of 2 x 2. Every weight is 1, and the loss is token 0, so that the
// gradient of the image counts how often token 0 sees each pixel. SPT has a layer norm in front of the
// weights; it is left out here, so that the numbers stay whole.

#include "apps/inspector/lessons/lessons.h"
#include "engine/ops/linear.h"
#include "engine/ops/patches.h"
#include "engine/ops/reduce.h"
#include "engine/ops/shape.h"

namespace tessera {

namespace {

PassRecord run(Numbers& numbers) {
  const Tensor image = numbers.leaf("image", {1, 1, 2, 4},
                                    {1, 2, 3, 4,  //
                                     5, 6, 7, 8});
  const Tensor weight =
      numbers.leaf("weight", {1, 20}, {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1});

  Tape tape;
  tape.keep_all();
  Tensor pixels = image, map = weight;
  if (numbers.has("shifts"))
    pixels = named("copies", shifted_copies(image, Directions::diagonal, 1));  // [1, 5, 2, 4]
  else
    map = named("map", slice(weight, 1, 0, 4));                 // the weights of the image itself
  const Tensor cut = named("patches", patches(pixels, 2));      // [1, 2, 20]: a row a patch
  const Tensor tokens = named("tokens", linear(cut, map, {}));  // [1, 2, 1]
  const Tensor first = named("first", slice(tokens, 1, 0, 1));
  const Tensor loss = sum(first);
  tape.backward(loss);
  return PassRecord(tape, numbers.with({{"loss", loss}}));
}

}  // namespace

const Lesson shifted_patches_lesson = {
    .name = "shifted-patches",
    .title = "SPT: a token that sees beyond its patch",
    .look_at =
        "Look at the five pictures in copies: the image, then moved along each diagonal, 0 where nothing "
        "comes in. The loss is token 0, whose patch is the two columns on the left. The gradient of the "
        "image counts how often token 0 sees a pixel: 2 2 1 0 in both rows.",
    .question = "Why does the third column get a gradient, and the last one none?",
    .answer =
        "Moved left by one, the third column comes to lie in the patch of token 0; moved up or down as well, "
        "it does so once for each of its pixels. The last column would have to move by two.",
    .run = run,
    .term = {"shifts", "shifted copies"},
};

}  // namespace tessera
