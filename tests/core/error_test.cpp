#include "engine/core/error.h"

#include <doctest/doctest.h>

#include "engine/core/dispatch.h"

using namespace tessera;

TEST_CASE("error: a message from parts") {
  CHECK_THROWS_WITH_AS(fail("op: ", 3, " of ", Shape{2, 4}), "op: 3 of [2, 4]", Error);
  CHECK_NOTHROW(check(true, "fine"));
  CHECK_THROWS_WITH_AS(check(false, "not ", "fine"), "not fine", Error);
}

TEST_CASE("error: the nearest known name, if any is near") {
  const std::vector<std::string> models{"vit", "s-vit", "l-vit", "sl-vit"};
  CHECK(nearest("sl-vti", models) == "sl-vit");
  CHECK(nearest("sl-vitt", models) == "sl-vit");
  CHECK(nearest("vit", models) == "vit");
  CHECK(nearest("resnet", models).empty());
  CHECK(nearest("", models).empty());
  CHECK(nearest("vit", {}).empty());
  CHECK(nearest("learning-rate", {"learning_rate", "rate"}) == "learning_rate");
  CHECK(did_you_mean("sl-vt", models) == "; did you mean 'sl-vit'?");
  CHECK(did_you_mean("resnet", models).empty());
}

TEST_CASE("dispatch: the type becomes a template argument; others are named") {
  const auto size_of_element = [](const Tensor& x) {
    size_t size = 0;
    dispatch(x, "op", [&]<class Dev, class T>() { size = sizeof(T); });
    return size;
  };
  CHECK(size_of_element(Tensor::empty({2})) == 4);
  CHECK(size_of_element(Tensor::empty({2}, DType::f64)) == 8);
  CHECK(size_of_element(Tensor::empty({2}, DType::bf16)) == 2);
  CHECK_THROWS_WITH_AS(size_of_element(Tensor::empty({2}, DType::i64)),
                       "op: i64 [2] is not floating; convert it with to(DType::f32)", Error);
}

TEST_CASE("dispatch: a dry run runs no kernel") {
  int ran = 0;
  const auto run = [&] { dispatch(Tensor::empty({1}), "op", [&]<class Dev, class T>() { ++ran; }); };
  {
    const DryRun dry;
    run();
    CHECK(DryRun::active());
  }
  CHECK(ran == 0);
  CHECK(!DryRun::active());
  run();
  CHECK(ran == 1);
}
