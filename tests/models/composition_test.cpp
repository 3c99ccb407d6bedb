// The papers' ideas compose: every combination on every backbone is built, or refused with a reason, and one
// step of gradient descent lowers the loss.

#include <doctest/doctest.h>

#include <cmath>
#include <functional>
#include <vector>

#include "engine/autograd/tape.h"
#include "engine/check/gradient_check.h"
#include "engine/check/op_case.h"
#include "engine/core/error.h"
#include "models/model.h"

using namespace tessera;

namespace {

struct Backbone {
  const char* arch;
  Json config;  // without tokenizer and attention
  Json patch, shifted;
  Json heads;
  std::vector<Json> pools;  // null: the backbone has no pooling
};

std::vector<Backbone> backbones() {
  const Json patch{{"kind", "patch"}, {"patch_size", 2}}, shifted{{"kind", "shifted"}, {"patch_size", 2}};
  const Json soft{{"kind", "soft_split"}, {"splits", 2}, {"token_dim", 4}};
  Json shifted_soft = soft;
  shifted_soft["directions"] = "diagonal";
  const Json spool{{"kind", "shifted"}};
  const Json stem{{"kind", "conv_stem"}, {"patch_size", 2}, {"channels", 3}};
  const Json strides{{"kind", "conv_stem"}, {"strides", {1, 1, 1, 1}}};
  Json shifted_strides = strides;
  shifted_strides["directions"] = "diagonal";
  shifted_strides["ratio"] = 1.0;  // of a stem that halves nothing
  const Json stages{{"dim", {4, 8}}, {"depth", {1, 1}}, {"mlp_ratio", {2, 2}}, {"proj_dim", 6}};
  return {{"vit", {{"dim", 8}, {"depth", 2}}, patch, shifted, 2, {Json()}},
          {"pit", {{"dim", 8}, {"depth", {1, 1}}}, patch, shifted, {2, 4}, {{{"kind", "conv"}}, spool}},
          {"swin",
           {{"dim", 8}, {"depth", {2, 1}}, {"window", 2}},
           patch,
           shifted,
           {2, 4},
           {{{"kind", "merge"}}, spool}},
          {"cait", {{"dim", 8}, {"depth", 2}, {"class_depth", 1}}, patch, shifted, 2, {Json()}},
          {"t2t", {{"dim", 8}, {"depth", 2}}, soft, shifted_soft, 2, {Json()}},
          {"lvvit", {{"dim", 8}, {"depth", 2}, {"pos_cnn", true}}, stem, shifted, 2, {Json()}},
          {"rmt", stages, strides, shifted_strides, {2, 2}, {Json()}},
          {"dit", {{"dim", 8}, {"depth", 2}, {"time_dim", 4}}, patch, shifted, 2, {Json()}}};
}

// Every combination of the score terms.
std::vector<Json> attentions(const Json& heads) {
  std::vector<Json> all;
  for (const char* scale : {"fixed", "learned"})
    for (const bool mask : {false, true})
      for (const bool bias : {false, true})
        for (const Json& prior :
             {Json(), Json{{"sharing", "head"}, {"hidden", 2}}, Json{{"sharing", "layer"}, {"hidden", 2}},
              Json{{"sharing", "model"}, {"hidden", 2}}})
          for (const Json& decay :
               {Json(), Json{{"kind", "fixed"}}, Json{{"kind", "distance"}, {"alpha", 0.2}},
                Json{{"kind", "content"}, {"alpha", 0.5}}, Json{{"kind", "content"}, {"distance", false}}})
            all.push_back({{"heads", heads},
                           {"scale", scale},
                           {"mask_diagonal", mask},
                           {"relative_bias", bias},
                           {"prior", prior},
                           {"decay", decay}});
  return all;
}

// Perturbs all parameters, because some start at zero and make other gradients zero (the prior's second
// layer).
void perturb(const Parameters& parameters) {
  uint64_t seed = 0;
  for (const Parameter& p : parameters) {
    if (!p.trainable) continue;
    const Tensor noise = random_tensor(p.value.shape(), ++seed);
    for (int64_t i = 0; i < noise.elements(); ++i) p.value.data<double>()[i] += 0.1 * noise.data<double>()[i];
  }
}

// Whether a parameter's gradient may be zero. The last layer reaches the logits through the class token
// alone, whose pairs have no prior, decay or relative bias; a convolution of the patches after it is not read
// either. (A prior shared by all layers gets gradients from the others.) A bias in front of a batch norm is
// subtracted with the mean.
bool may_be_zero(const std::string& arch, const std::string& name) {
  if (arch == "rmt")
    return name == "proj.bias" ||
           (name.ends_with(".bias") &&
            (name.starts_with("patch_embed.convs") || name.find("downsample.reduction") != name.npos));
  const bool last =
      arch == "pit" ? name.starts_with("transformers.1.blocks.0.")
                    : (arch == "vit" || arch == "t2t" || arch == "lvvit") && name.starts_with("blocks.1.");
  return last && (name.find(".prior.") != name.npos || name.find(".gate.") != name.npos ||
                  name.find(".pos_cnn.") != name.npos || name.ends_with("relative_position_bias_table"));
}

double loss_of(const Model& model, const Tensor& images, const Tensor& labels, bool backward) {
  Pass pass{.training = true, .random = Random(1), .drop = false};
  const TensorMap batch{{"input", images}, {"target", labels}};
  if (!backward) return model.training_loss(batch, {}, pass).loss.item();
  Tape tape;
  const Tensor loss = model.training_loss(batch, {}, pass).loss;
  tape.backward(loss);
  return loss.item();
}

void check_gradients(const Model& model, const std::string& arch) {
  for (const Parameter& p : model.parameters) {
    if (!p.trainable) continue;
    CAPTURE(p.name);
    const Tensor grad = p.value.grad();
    REQUIRE((grad.defined() || may_be_zero(arch, p.name)));
    double largest = 0;
    if (grad.defined())
      for (const double g : grad.values()) largest = std::isfinite(g) ? std::max(largest, std::abs(g)) : g;
    CHECK(std::isfinite(largest));
    if (!may_be_zero(arch, p.name)) CHECK(largest > 0);
  }
}

// One step of plain gradient descent, so short that the loss must fall if the gradient is right.
void check_step(const Model& model, const std::string& arch) {
  perturb(model.parameters);
  const Tensor images = random_tensor({3, 3, 8, 8}, 77),
               labels = Tensor::from(std::vector<int64_t>{0, 1, 2}, {3});
  const double before = loss_of(model, images, labels, true);
  check_gradients(model, arch);
  double squares = 0;
  for (const Parameter& p : model.parameters)
    if (p.trainable && p.value.grad().defined())
      for (const double g : p.value.grad().values()) squares += g * g;
  const double rate = 1e-3 * before / squares;  // a first-order fall of a thousandth
  for (const Parameter& p : model.parameters)
    if (p.trainable && p.value.grad().defined())
      for (int64_t i = 0; i < p.value.elements(); ++i)
        p.value.data<double>()[i] -= rate * p.value.grad().data<double>()[i];
  CHECK(loss_of(model, images, labels, false) < before);
}

// The logits of a training pass, and each parameter's gradient of a sum of them.
std::vector<Tensor> logits_and_gradients(const Model& model, bool answer_only) {
  model.parameters.zero_grad();
  Pass pass{.training = true, .random = Random(3), .answer_only = answer_only};
  Tape tape;
  const Tensor logits = model.logits(random_tensor({3, 3, 8, 8}, 78), pass);
  tape.backward(logits, random_tensor(logits.shape(), 79));
  std::vector<Tensor> all{logits};
  for (const Parameter& p : model.parameters)
    if (p.trainable) all.push_back(p.value.grad().defined() ? p.value.grad().clone() : Tensor());
  return all;
}

// A pass that wants the answer only, which leaves out tokens and dropped images, has the same answer and the
// same gradients.
void check_answer_only(const Model& model) {
  const std::vector<Tensor> whole = logits_and_gradients(model, false),
                            less = logits_and_gradients(model, true);
  REQUIRE(whole.size() == less.size());
  for (size_t i = 0; i < whole.size(); ++i) {
    REQUIRE(whole[i].defined() == less[i].defined());
    if (whole[i].defined()) CHECK(relative_error(less[i], whole[i]) <= 1e-10);
  }
}

}  // namespace

TEST_CASE("every combination of the four ideas trains on every backbone, or is refused with a reason") {
  for (const Backbone& backbone : backbones()) {
    int built = 0, refused = 0;
    for (const Json& tokenizer : {backbone.patch, backbone.shifted})
      for (const Json& pool : backbone.pools)
        for (const Json& attention : attentions(backbone.heads)) {
          Json config = backbone.config;
          config.update({{"arch", backbone.arch}, {"image_size", 8}, {"num_classes", 3}});
          if (config["arch"] != "dit") config["drop_path"] = 0.5;
          config["tokenizer"] = tokenizer;
          config["attention"] = attention;
          if (!pool.is_null()) config["pool"] = pool;
          if (config["arch"] == "lvvit" && !attention["prior"].is_null()) config["sp_layers"] = 1;
          if (config["arch"] == "rmt") config["attention"]["decomposed"] = {true, false};
          CAPTURE(config.dump());
          try {
            const Model model = build(config, {.dtype = DType::f64});
            ++built;
            check_step(model, backbone.arch);
            check_answer_only(model);
          } catch (const Error& error) {
            ++refused;
            // A prior that the model shares needs one grid for all layers.
            CHECK(std::string(error.what()).find("a prior cannot be shared by the model") !=
                  std::string::npos);
          }
        }
    CAPTURE(backbone.arch);
    CHECK(built >= 240);
    const bool staged = backbone.heads.is_array();
    CHECK((refused > 0) == staged);
  }
}
