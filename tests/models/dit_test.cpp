#include "models/dit.h"

#include <doctest/doctest.h>

#include <cmath>

#include "engine/ops/elementwise.h"
#include "engine/ops/reduce.h"
#include "models/presets.h"
#include "tests/error_of.h"
#include "tests/models/differences.h"
#include "tests/models/training.h"

using namespace tessera;

namespace {

// Every score term, and the variance learned.
Json everything() {
  return {{"arch", "dit"},
          {"image_size", 4},
          {"in_channels", 2},
          {"num_classes", 3},
          {"dim", 8},
          {"depth", 2},
          {"mlp_ratio", 2.0},
          {"tokenizer", {{"kind", "shifted"}, {"patch_size", 2}}},
          {"attention",
           {{"heads", 2},
            {"scale", "learned"},
            {"mask_diagonal", true},
            {"relative_bias", true},
            {"prior", {{"sharing", "model"}, {"hidden", 3}}},
            {"decay", {{"kind", "content"}, {"alpha", 0.5}}}}},
          {"learn_sigma", true},
          {"time_dim", 8},
          {"steps", 100}};
}

TensorMap batch(DType dtype = DType::f32) {
  return {{"input", random_tensor({3, 2, 4, 4}, 5).to(dtype)},
          {"target", Tensor::from(std::vector<int64_t>{2, 0, 1}, {3})}};
}

double loss_of(const Model& model, const LossOptions& options, uint64_t seed) {
  Pass pass{.training = true, .random = Random(seed)};
  return model.training_loss(batch(), options, pass).loss.item();
}

}  // namespace

TEST_CASE("DiT's answer with every score term has the gradient of central differences") {
  const Model model = build(everything(), {.dtype = DType::f64});
  perturb(model);
  // The training loss cannot be checked this way: its bound is detached from the predicted noise, which
  // differences ignore.
  const Tensor images = random_tensor({2, 2, 4, 4}, 9), weights = random_tensor({2, 4, 4, 4}, 10);
  Pass pass;
  check_slopes(
      model, [&] { return sum(multiply(model.logits(images, pass), weights)); }, 1e-5);
}

TEST_CASE("a fresh DiT answers zero, because each block starts as the identity") {
  const Model model = build(everything());
  Pass pass;
  const Tensor out = model.logits(random_images({1, 2, 4, 4}), pass);
  CHECK(out.shape() == Shape{1, 4, 4, 4});
  for (const double value : out.values()) CHECK(value == 0);
}

TEST_CASE("parameters have the names and shapes of timm's conventions") {
  Json config = everything();
  const auto shape_of = [&](const char* name) {
    const Model model = build(config);
    const Tensor* parameter = model.parameters.find(name);
    return parameter ? parameter->shape() : Shape{0};
  };
  CHECK(shape_of("t_embed.fc1.weight") == Shape{8, 8});
  CHECK(shape_of("y_embed.weight") == Shape{4, 8});
  CHECK(shape_of("blocks.1.adaln.weight") == Shape{48, 8});
  CHECK(shape_of("final.adaln.bias") == Shape{16});
  CHECK(shape_of("final.proj.weight") == Shape{16, 8});
  CHECK(shape_of("prior.fc1.weight") == Shape{3, 2});
  CHECK(shape_of("blocks.0.norm1.weight") == Shape{0});
  config["label_dropout"] = 0;
  CHECK(shape_of("y_embed.weight") == Shape{3, 8});
}

TEST_CASE("linear layers start xavier uniform, embeddings small, adaln at zero") {
  Json config = everything();
  config["dim"] = 64;
  const Model model = build(config);
  const auto moments = [&](const char* name) {
    double largest = 0, squares = 0;
    const std::vector<double> values = model.parameters.find(name)->values();
    for (const double value : values) {
      largest = std::max(largest, std::abs(value));
      squares += value * value;
    }
    return std::pair{largest, std::sqrt(squares / static_cast<double>(values.size()))};
  };
  const double bound = std::sqrt(6.0 / (64 + 192));
  const auto [largest, deviation] = moments("blocks.0.attn.qkv.weight");
  CHECK(largest <= bound);
  CHECK(deviation == doctest::Approx(bound / std::sqrt(3.0)).epsilon(0.03));
  CHECK(moments("t_embed.fc2.weight").second == doctest::Approx(0.02).epsilon(0.05));
  CHECK(moments("blocks.0.adaln.weight").first == 0);
  CHECK(moments("blocks.0.attn.gate.weight").second == doctest::Approx(0.02).epsilon(0.2));
}

TEST_CASE("the training loss is drawn from the pass, and parts of a batch add up") {
  const Model model = build(everything());
  CHECK(loss_of(model, {}, 1) == loss_of(model, {}, 1));
  CHECK(loss_of(model, {}, 1) != loss_of(model, {}, 2));
  CHECK(loss_of(model, {.rows = 12}, 1) == doctest::Approx(loss_of(model, {}, 1) / 4));
  CHECK_THROWS_WITH_AS(loss_of(model, {.smoothing = 0.1}, 1), doctest::Contains("label smoothing off"),
                       Error);
  TensorMap mixed = batch();
  mixed["target_b"] = mixed["target"];
  Pass pass;
  CHECK(error_of([&] { model.training_loss(mixed, {}, pass); }).find("turn mixing and label smoothing off") !=
        std::string::npos);
}

TEST_CASE("DiT's loss falls on one batch, at the same draws") {
  for (const char* betas : {"linear", "cosine"}) {
    Json config = everything();
    config["betas"] = betas;
    const std::vector<double> values = losses(build(config), batch(), 60, 0.02);
    CAPTURE(betas);
    CHECK(values.back() < 0.5 * values.front());
  }
}

TEST_CASE("samples have the images' shape and follow the seed; labels and guidance count") {
  const Model model = build(everything(), {.dtype = DType::f64});
  perturb(model);
  const auto drawn = [&](std::vector<int64_t> labels, double guidance, uint64_t seed,
                         DiffusionSampler sampler) {
    Pass pass{.random = Random(seed)};
    const SampleOptions options{.sampler = sampler, .steps = 4, .guidance = guidance, .clip = true};
    return model.sample(Tensor::from(labels, {static_cast<int64_t>(labels.size())}), options, pass).values();
  };
  CHECK(drawn({0, 1}, 1, 1, DiffusionSampler::ddpm).size() == 2 * 2 * 4 * 4);
  for (const DiffusionSampler sampler : {DiffusionSampler::ddpm, DiffusionSampler::ddim}) {
    CHECK(drawn({0, 1}, 1, 1, sampler) == drawn({0, 1}, 1, 1, sampler));
    CHECK(drawn({0, 1}, 1, 1, sampler) != drawn({0, 1}, 1, 2, sampler));
    CHECK(drawn({0, 1}, 1, 1, sampler) != drawn({0, 2}, 1, 1, sampler));
    CHECK(drawn({0, 1}, 1, 1, sampler) != drawn({0, 1}, 2, 1, sampler));
  }
}

TEST_CASE("a DiT trained on two pictures draws the one of the class it is given") {
  const Model model = build({{"arch", "dit"},
                             {"image_size", 4},
                             {"in_channels", 1},
                             {"num_classes", 2},
                             {"dim", 32},
                             {"depth", 2},
                             {"tokenizer", {{"kind", "patch"}, {"patch_size", 2}}},
                             {"attention", {{"heads", 2}, {"qkv_bias", true}}},
                             {"label_dropout", 0.1},
                             {"time_dim", 16},
                             {"steps", 100}});
  std::vector<double> pixels;  // class 0: the left half is bright; class 1: the upper half
  std::vector<int64_t> classes;
  for (int64_t image = 0; image < 32; ++image) {
    for (int64_t i = 0; i < 16; ++i) pixels.push_back((image % 2 == 0 ? i % 4 : i / 4) < 2 ? 1 : -1);
    classes.push_back(image % 2);
  }
  const TensorMap shown{{"input", Tensor::from(pixels, {32, 1, 4, 4})},
                        {"target", Tensor::from(classes, {32})}};
  AdamW optimizer(make_groups(trainable(model.parameters), 0));
  Pass pass{.training = true, .random = Random(3)};
  for (int step = 0; step < 500; ++step) {
    Tape tape;
    const Tensor loss = model.training_loss(shown, {}, pass).loss;
    model.parameters.zero_grad();
    tape.backward(loss);
    optimizer.step(3e-3);
  }
  const Tensor asked = Tensor::from(std::vector<int64_t>{0, 1, 0, 1}, {4});
  for (const DiffusionSampler sampler : {DiffusionSampler::ddpm, DiffusionSampler::ddim}) {
    const SampleOptions options{.sampler = sampler, .steps = 25, .guidance = 1.5, .clip = true};
    const std::vector<double> drawn = model.sample(asked, options, pass).values();
    double error = 0;
    for (size_t i = 0; i < drawn.size(); ++i) error = std::max(error, std::abs(drawn[i] - pixels[i]));
    CAPTURE(sampler == DiffusionSampler::ddpm);
    CHECK(error < 1);  // every pixel has the right sign
  }
}

TEST_CASE("configs that DiT cannot have are refused with the reason") {
  const auto says = [](const char* key, const Json& value, const std::string& part) {
    Json config = everything();
    config[key] = value;
    check_refused(config, part);
  };
  CHECK(refusal(everything()) == "");
  says("dim", 10, "multiple of 4");
  says("time_dim", 7, "half are cosines");
  says("steps", 20, "linear beta");
  says("betas", "cosin", "did you mean 'cosine'");
  says("drop_path", 0.1, "drop_path is not known here");
  says("label_dropout", 1.5, "label_dropout");
  says("image_size", 5, "5 pixels");
  says("tokenizer", {{"kind", "patch"}, {"patch_size", 2}, {"stride", 1}}, "tokenizer.stride goes with");
  const Model model = build(everything());
  Pass pass;
  CHECK_THROWS_WITH_AS(model.training_loss({{"input", random_images({2, 2, 4, 4})},
                                            {"target", Tensor::from(std::vector<int64_t>{3, 0}, {2})}},
                                           {}, pass),
                       doctest::Contains("label 3 of 3 classes"), Error);
}

TEST_CASE("DiT's presets have the expected parameters and multiply-accumulates") {
  check_cost("dit-s-2", 32, 1000, 32865, 6058131456);
  check_cost("dit-s-2-decay", 32, 1000, 32893, 6065209344);
  check_cost("dit-b-2", 32, 1000, 130316, 23010017280);
  check_cost("dit-xt", 32, 10, 5513, 242393088);
  check_cost("dit-xt-decay", 32, 10, 5522, 242982912);
}

TEST_CASE("every size of DiT has the parameters and GFLOPs that its paper gives") {
  struct Size {
    const char* name;
    int64_t dim, depth, heads;
    double millions, billions;  // of parameters; of multiply-accumulates, which the paper calls FLOPs
  };
  // Peebles and Xie (2023), patches of 2: images of 256 x 256, latents of 32 x 32, 1000 classes.
  for (const Size& size : {Size{"s", 384, 12, 6, 33, 6.06}, Size{"b", 768, 12, 12, 130, 23.01},
                           Size{"l", 1024, 24, 16, 458, 80.71}, Size{"xl", 1152, 28, 16, 675, 118.64}})
    for (const int64_t patch : {2, 4, 8}) {
      const std::string name = "dit-" + std::string(size.name) + "-" + std::to_string(patch);
      CAPTURE(name);
      const Cost cost = cost_of(preset(name, 32, 1000));
      if (patch == 2) {
        CHECK(std::round(static_cast<double>(cost.parameters) / 1e6) == size.millions);
        CHECK(std::round(static_cast<double>(cost.macs) / 1e7) / 100 == doctest::Approx(size.billions));
      }
      // A block: qkv, projection and MLP, 12 D^2 a token; scores and mixture, 2 N D; adaLN, 6 D^2; and two
      // norms, one a number each.
      const int64_t d = size.dim, side = 32 / patch, n = side * side, pixels = patch * patch;
      const int64_t blocks = size.depth * (n * (12 * d * d + 2 * n * d + 2 * d) + 6 * d * d),
                    ends = n * d * pixels * (4 + 8) + n * d + 2 * d * d + 256 * d + d * d;
      CHECK(cost.macs == blocks + ends);
      // SDT's gates: a weight and a bias for each head and layer.
      CHECK(cost_of(preset(name + "-decay", 32, 1000)).parameters ==
            cost.parameters + size.depth * size.heads * (d + 1));
    }
}

TEST_CASE("DiT takes RMT's fixed decay too, which has no parameters") {
  Json config = preset("dit-s-4", 32, 1000);
  const int64_t without = cost_of(config).parameters;
  config["attention"]["decay"] = {{"kind", "fixed"}, {"initial", 2}, {"range", 4}};
  CHECK(cost_of(config).parameters == without);
  Json small = everything();
  small["attention"]["decay"] = {{"kind", "fixed"}, {"initial", 2}, {"range", 4}};
  CHECK(refusal(small) == "");
}
