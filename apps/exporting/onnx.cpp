#include "apps/exporting/onnx.h"

#include "apps/exporting/onnx_trace.h"
#include "engine/core/error.h"
#include "engine/core/random.h"
#include "engine/ops/noise.h"
#include "models/dit.h"
#include "models/parts/attention.h"

namespace tessera {

namespace {

// Numbers of no pattern, so that no two values of a pass are equal by chance.
Tensor images_of(const Model& model, int64_t count) {
  const int64_t side = model.image_size();
  return normal_noise({count, model.in_channels(), side, side}, 1);
}

// 1, 2, 3 ... and 0, 0, 1 ...: which input chooses a row shows in the numbers.
std::vector<TracedInput> diffusion_inputs(const Model& model, int64_t count) {
  std::vector<int64_t> times, labels;
  for (int64_t i = 0; i < count; ++i) {
    times.push_back(1 + i % (model.config.value("steps", int64_t{1000}) - 1));
    labels.push_back(0);
  }
  return {{"images", images_of(model, count)},
          {"t", Tensor::from(times, {count})},
          {"y", Tensor::from(labels, {count})}};
}

TracedProgram denoiser_of(const Model& model) {
  TracedProgram program;
  program.inputs = [&](int64_t count) { return diffusion_inputs(model, count); };
  program.run = [&](const std::vector<TracedInput>& inputs) {
    Pass pass;
    const Tensor& images = inputs[0].value;
    const TensorMap outputs = model.evaluate({{"input", images},
                                              {"t", inputs[1].value},
                                              {"y", inputs[2].value},
                                              {"noise", Tensor::zeros(images.shape())}},
                                             pass);
    return entry(outputs, "logits");
  };
  program.tables = {{"t_embed.waves", "t",
                     dit_time_waves(model.config.value("steps", int64_t{1000}),
                                    model.config.value("time_dim", int64_t{256}), DType::f32)}};
  return program;
}

TracedProgram classifier_of(const Model& model) {
  TracedProgram program;
  program.inputs = [&](int64_t count) {
    return std::vector<TracedInput>{{"images", images_of(model, count)}};
  };
  program.run = [&](const std::vector<TracedInput>& inputs) {
    Pass pass;
    return model.logits(inputs[0].value, pass);
  };
  return program;
}

}  // namespace

std::string onnx_of(const Model& model, const std::string& name,
                    const std::map<std::string, std::string>& metadata) {
  check(model.parameters.begin()->value.dtype() == DType::f32, "onnx: the model's weights are ",
        model.parameters.begin()->value.dtype(), ", f32 is exported");
  const PlainAttention plain;
  const bool diffuses = model.task == Task::diffuse;
  OnnxGraph graph;
  trace_onnx(graph, diffuses ? denoiser_of(model) : classifier_of(model), model.parameters,
             diffuses ? "noise" : "logits");
  return graph.file(name, metadata);
}

}  // namespace tessera
