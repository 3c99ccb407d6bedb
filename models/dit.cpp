#include "models/dit.h"

#include <cmath>

#include "engine/autograd/observe.h"
#include "engine/autograd/tape.h"
#include "engine/ops/elementwise.h"
#include "engine/ops/noise.h"
#include "engine/ops/norm.h"
#include "engine/ops/reduce.h"
#include "engine/ops/shape.h"

namespace tessera {

namespace {

constexpr double start_deviation = 0.02;

// 10000^(-k / count)
double frequency(int64_t k, int64_t count) {
  return std::pow(10000.0, -static_cast<double>(k) / static_cast<double>(count));
}

// The position embedding [sin(x u), cos(x u), sin(y u), cos(y u)] of the token in row y and column x, with
// u_k = 10000^(-4k / D); the column takes the first half of the channels. [1, h w, D]
Tensor position_waves(Grid grid, int64_t dim, const Scope& scope) {
  const int64_t count = dim / 4;
  std::vector<double> values;
  const auto waves = [&](int64_t place) {
    for (int64_t k = 0; k < count; ++k)
      values.push_back(std::sin(static_cast<double>(place) * frequency(k, count)));
    for (int64_t k = 0; k < count; ++k)
      values.push_back(std::cos(static_cast<double>(place) * frequency(k, count)));
  };
  for (int64_t y = 0; y < grid.height; ++y)
    for (int64_t x = 0; x < grid.width; ++x) {
      waves(x);
      waves(y);
    }
  return Tensor::from(values, {1, grid.height * grid.width, dim}, scope.dtype()).to(scope.device());
}

// Part i of an adaln's output [B, parts D], in a shape that broadcasts over tokens. [B, 1, D]
Tensor part(const Tensor& modulation, int64_t i, int64_t dim) {
  return slice(modulation, 1, i * dim, dim).reshape({-1, 1, dim});
}

// (1 + scale) * LN(x) + shift
Tensor modulated_norm(const Tensor& x, const Tensor& shift, const Tensor& scale) {
  const int64_t dim = x.dim(2);
  const Tensor one = Tensor::full({dim}, 1, x.dtype(), x.device());
  const Tensor zero = Tensor::zeros({dim}, x.dtype(), x.device());
  return add(multiply(layer_norm(x, one, zero, 1e-6), add_scalar(scale, 1)), shift);
}

Linear zero_linear(const Scope& scope, int64_t in, int64_t out) {
  return Linear(scope, in, out, {.weight_init = constant(0)});
}

}  // namespace

Tensor dit_time_waves(int64_t steps, int64_t time_dim, DType dtype) {
  const int64_t half = time_dim / 2;
  std::vector<double> frequencies, values;
  for (int64_t k = 0; k < half; ++k) frequencies.push_back(frequency(k, half));
  for (int64_t step = 0; step < steps; ++step) {
    const auto t = static_cast<double>(step);
    for (const double u : frequencies) values.push_back(std::cos(t * u));
    for (const double u : frequencies) values.push_back(std::sin(t * u));
  }
  return Tensor::from(values, {steps, time_dim}, dtype);
}

DiT::TimeEmbedding::TimeEmbedding(const Scope& scope, int64_t steps, int64_t time_dim, int64_t dim)
    : fc1(scope / "fc1", time_dim, dim, {.weight_init = normal(start_deviation)}),
      fc2(scope / "fc2", dim, dim, {.weight_init = normal(start_deviation)}),
      waves(dit_time_waves(steps, time_dim, scope.dtype()).to(scope.device())),
      path(scope.path()) {}

Tensor DiT::TimeEmbedding::operator()(const Tensor& times) const {
  const ModuleScope here(path);
  return fc2(fc1(gather(waves, times.to(waves.device())), Activation::silu));
}

DiT::Block::Block(const Scope& scope, int64_t dim, const AttentionOptions& attention, Grid grid,
                  int64_t hidden)
    : attn(scope / "attn", dim, attention, grid, 0),
      mlp(scope / "mlp", dim, hidden, Activation::gelu_tanh),
      adaln(zero_linear(scope / "adaln", dim, 6 * dim)),
      path(scope.path()) {}

Tensor DiT::Block::operator()(const Tensor& x, const Tensor& condition, const Tensor& omega) const {
  const ModuleScope here(path);
  const Tensor modulation =
      adaln(condition);  // [B, 6 D]: shift, scale and gate of attention, then of the MLP
  const auto of = [&](int64_t i) { return part(modulation, i, x.dim(2)); };
  const Tensor attended = add(x, multiply(of(2), attn(modulated_norm(x, of(0), of(1)), omega)));
  return add(attended, multiply(of(5), mlp(modulated_norm(attended, of(3), of(4)))));
}

DiT::FinalLayer::FinalLayer(const Scope& scope, int64_t dim, int64_t out)
    : adaln(zero_linear(scope / "adaln", dim, 2 * dim)),
      proj(zero_linear(scope / "proj", dim, out)),
      path(scope.path()) {}

Tensor DiT::FinalLayer::operator()(const Tensor& x, const Tensor& condition) const {
  const ModuleScope here(path);
  const Tensor modulation = adaln(condition);
  return proj(modulated_norm(x, part(modulation, 0, x.dim(2)), part(modulation, 1, x.dim(2))));
}

DiT::DiT(const Json& config, const Scope& outer) {
  const Scope scope = outer.with(LinearRule::xavier_uniform);
  Fields fields(config, "dit");
  const Range positive = Range::at_least(1);
  fields.choice("arch", {"dit"});
  image_size = fields.get<int64_t>("image_size", positive);
  in_channels = fields.get<int64_t>("in_channels", 3, positive);
  num_classes = fields.get<int64_t>("num_classes", positive);
  const auto dim = fields.get<int64_t>("dim", positive), depth = fields.get<int64_t>("depth", positive);
  const double mlp_ratio = fields.get("mlp_ratio", 4.0, Range::above(0));
  const Tokenizer::Options tokenizer = read_tokenizer(fields.object("tokenizer"));
  const AttentionOptions attention = read_attention(fields.object("attention"), dim);
  const bool learn_sigma = fields.get("learn_sigma", false);
  label_dropout = fields.get("label_dropout", 0.1, Range::between(0, 1));
  const auto time_dim = fields.get<int64_t>("time_dim", 256, Range::at_least(2));
  steps = fields.get<int64_t>("steps", 1000, Range::at_least(2));
  betas = fields.choice("betas", {"linear", "cosine"}, "linear") == "linear" ? Betas::linear : Betas::cosine;
  if (dim % 4 != 0) fields.fail_at("dim", "is ", dim, "; the positions' four waves need a multiple of 4");
  if (time_dim % 2 != 0) fields.fail_at("time_dim", "is ", time_dim, "; half are cosines, half sines");
  if (betas == Betas::linear && steps <= 20)
    fields.fail_at("steps", "is ", steps, "; so few make the last linear beta, 20 / steps, 1 or more");
  if (tokenizer.stride)
    fields.fail_at("tokenizer.stride", "goes with classifiers; each pixel is of one token here");
  fields.done();

  grid = patch_grid(image_size, tokenizer);
  patch_embed = Tokenizer(scope / "patch_embed", tokenizer, in_channels, dim, 1e-5);
  positions = position_waves(grid, dim, scope);
  t_embed = TimeEmbedding(scope / "t_embed", steps, time_dim, dim);
  y_embed =
      (scope / "y_embed")
          .parameter("weight", {num_classes + (label_dropout > 0 ? 1 : 0), dim}, normal(start_deviation));
  y_embed_path = (scope / "y_embed").path();
  if (attention.prior.sharing == Sharing::model)
    prior.emplace(scope / "prior", 1, attention.prior.hidden, grid, 0);
  const auto hidden = static_cast<int64_t>(static_cast<double>(dim) * mlp_ratio);
  for (int64_t i = 0; i < depth; ++i) blocks.emplace_back(scope / "blocks" / i, dim, attention, grid, hidden);
  const int64_t patch = tokenizer.patch_size, out = in_channels * (learn_sigma ? 2 : 1);
  final = FinalLayer(scope / "final", dim, patch * patch * out);
}

Tensor DiT::embedded(const Tensor& labels) const {
  const ModuleScope here(y_embed_path);
  return gather(y_embed, labels.to(y_embed.device()));
}

Tensor DiT::operator()(const Tensor& x, const Tensor& times, const Tensor& labels) const {
  check(x.rank() == 4 && times.shape() == Shape{x.dim(0)} && labels.shape() == times.shape(), "dit: times ",
        times.shape(), " and labels ", labels.shape(), " for images ", x.shape(), "; one an image is wanted");
  Tensor h = add(patch_embed(x), positions);  // [B, N, D]
  const Tensor of_time = t_embed(times);
  const Tensor c = silu(add(of_time, embedded(labels)));  // [B, D]
  const Tensor omega = prior ? (*prior)() : Tensor();
  for (const Block& block : blocks) h = block(h, c, omega);
  const int64_t p = x.dim(2) / grid.height;
  const Tensor patches = final(h, c).reshape({x.dim(0), grid.height, grid.width, p, p, -1});
  return permute(patches, {0, 5, 1, 3, 2, 4}).reshape({x.dim(0), -1, x.dim(2), x.dim(3)});
}

Tensor DiT::operator()(const Tensor& images, Pass&) const {
  const Tensor zeros = Tensor::zeros({images.dim(0)}, DType::i64);
  return (*this)(images, zeros, zeros);
}

Denoiser DiT::denoiser() const {
  return {[this](const Tensor& x, const Tensor& times, const Tensor& labels) {
            return (*this)(x, times, labels);
          },
          steps, betas, label_dropout > 0 ? num_classes : -1};
}

TensorMap DiT::evaluate(const TensorMap& inputs, Pass&) const {
  const Tensor &input = inputs.at("input"), &noise = inputs.at("noise"), &t = inputs.at("t"),
               &y = inputs.at("y"), clean = input.detach();
  TensorMap outputs;
  const Tensor logits = outputs["logits"] = (*this)(input, t, y);
  outputs["loss"] = mean(square(subtract(slice(logits, 1, 0, in_channels), noise)));

  const NoiseSchedule schedule(steps, betas);
  const Tensor noisy = outputs["noisy"] = add_noise(schedule, clean, t, noise);
  Tensor answer;
  {
    const NoRecording pause;
    answer = (*this)(noisy, t, y).require_grad();
  }
  outputs["noisy_logits"] = answer;
  const auto draw = [&] { return clean; };
  SampleOptions options{.sampler = DiffusionSampler::ddpm, .steps = 5, .guidance = 2};
  outputs["ddpm"] = tessera::sample(denoiser(), noise, y, options, draw);
  options.sampler = DiffusionSampler::ddim;
  outputs["ddim"] = tessera::sample(denoiser(), noise, y, options, draw);

  Tape tape;  // of the training loss alone: it ends at the network's answer
  outputs["training_loss"] = diffusion_loss(schedule, answer, clean, noisy, t, noise);
  tape.backward(outputs["training_loss"]);
  outputs["grad_noisy_logits"] = answer.grad();
  return outputs;
}

TensorMap DiT::draw(const TensorMap& inputs, Pass& pass) const {
  const Tensor& labels = entry(inputs, "target");
  std::vector<int64_t> times, told;
  for (const int64_t label : labels.integers()) {
    check(label >= 0 && label < num_classes, "dit: label ", label, " of ", num_classes, " classes");
    times.push_back(pass.random.below(steps));
    told.push_back(pass.random.chance(label_dropout) ? num_classes : label);
  }
  return {{"t", Tensor::from(times, labels.shape())}, {"y", Tensor::from(told, labels.shape())}};
}

TrainingLoss DiT::training_loss(const TensorMap& inputs, const LossOptions& options, Pass& pass) const {
  const Tensor &images = entry(inputs, "input"), &labels = entry(inputs, "target");
  check(labels.dtype() == DType::i64 && !inputs.contains("target_b") && options.smoothing == 0,
        "dit: an image is trained under the one class that it has; turn mixing and label smoothing off");
  const int64_t rows = images.dim(0);
  const TensorMap drawn = inputs.contains("t") ? inputs : draw(inputs, pass);
  const Tensor &t = entry(drawn, "t"), &y = entry(drawn, "y");
  // The variational bound divides small differences by smaller variances, so only the network runs in bf16.
  const DType type = wide(images.dtype());
  const auto given = inputs.find("noise");
  const Tensor clean = cast(images, type),
               noise = given != inputs.end()
                           ? given->second
                           : normal_noise(images.shape(), pass.key(), type, images.device());
  const NoiseSchedule schedule(steps, betas);
  const Tensor noisy = add_noise(schedule, clean, t, noise);
  const Tensor answer = cast((*this)(cast(noisy, y_embed.dtype()), t, y), type);
  const Tensor loss = diffusion_loss(schedule, answer, clean, noisy, t, noise);
  if (options.rows == 0 || options.rows == rows) return {loss, answer};
  return {scale(loss, static_cast<double>(rows) / static_cast<double>(options.rows)), answer};
}

Tensor DiT::sample(const Tensor& labels, const SampleOptions& options, Pass& pass) const {
  const Shape shape{labels.elements(), in_channels, image_size, image_size};
  check(options.seeds.empty() || std::ssize(options.seeds) == shape[0], "dit: ", options.seeds.size(),
        " seeds for ", shape[0], " images; one an image is wanted");
  uint64_t drawn = 0;  // the noises so far
  const auto draw = [&] {
    const DType dtype = y_embed.dtype();
    if (options.seeds.empty()) return normal_noise(shape, pass.key(), dtype, y_embed.device());
    const Tensor noise = Tensor::empty(shape, dtype);
    for (int64_t i = 0; i < shape[0]; ++i) {
      const uint64_t key = Random(options.seeds[static_cast<size_t>(i)]).split(drawn).bits64();
      noise.rows(i, 1).copy_from(normal_noise({1, shape[1], shape[2], shape[3]}, key, dtype));
    }
    ++drawn;
    return noise.to(y_embed.device());
  };
  return tessera::sample(denoiser(), draw(), labels, options, draw);
}

}  // namespace tessera
