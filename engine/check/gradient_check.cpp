#include "engine/check/gradient_check.h"

#include <tbb/task_arena.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "engine/autograd/tape.h"
#include "engine/core/error.h"
#include "engine/core/parallel.h"

namespace tessera {

namespace {

constexpr uint64_t cotangent_seed = 0x7e55e7a;

std::vector<Tensor> leaves(const OpCase& op_case, DType dtype, Device device = Device::cpu) {
  std::vector<Tensor> inputs;
  for (const Tensor& input : op_case.inputs)
    inputs.push_back(input.to(dtype).to(device).clone().require_grad());
  return inputs;
}

Tensor backward(const OpCase::Function& function, const std::vector<Tensor>& inputs) {
  Tape tape;
  const Tensor y = function(inputs);
  if (y.is_leaf() || y.place().tape == 0) fail("nothing was recorded");
  tape.backward(y, random_tensor(y.shape(), cotangent_seed).to(y.dtype()).to(y.device()));
  return y.detach();
}

// sum(output * cotangent), in double.
double weighed(const OpCase::Function& function, const std::vector<Tensor>& inputs, const Tensor& cotangent) {
  const Tensor y = function(inputs);
  double sum = 0;
  for (int64_t i = 0; i < y.elements(); ++i) sum += y.data<double>()[i] * cotangent.data<double>()[i];
  return sum;
}

// The derivative of weighed() by input `which`, by differences at +-h and +-2h, whose error is of order h^4.
Tensor numeric_gradient(const OpCase& op_case, std::vector<Tensor>& inputs, size_t which,
                        const Tensor& cotangent) {
  constexpr double h = 1e-3;
  const Tensor& x = inputs[which];
  Tensor gradient = Tensor::empty(x.shape(), DType::f64);
  for (int64_t i = 0; i < x.elements(); ++i) {
    double& value = x.data<double>()[i];
    const double start = value;
    const auto at = [&](double moved) {
      value = moved;
      return weighed(op_case.function, inputs, cotangent);
    };
    const double near = at(start + h) - at(start - h), far = at(start + 2 * h) - at(start - 2 * h);
    gradient.data<double>()[i] = (8 * near - far) / (12 * h);
    value = start;
  }
  return gradient;
}

bool same_bits(const Tensor& x, const Tensor& y) {
  const Tensor a = x.to(Device::cpu), b = y.to(Device::cpu);
  return a.shape() == b.shape() && std::memcmp(a.raw(), b.raw(), a.bytes()) == 0;
}

bool same_bits(const Run& a, const Run& b) {
  bool same = same_bits(a.output, b.output);
  for (size_t i = 0; i < a.gradients.size(); ++i) same = same && same_bits(a.gradients[i], b.gradients[i]);
  return same;
}

class Poisoned {
 public:
  Poisoned() { poison_new_storage(true); }
  ~Poisoned() { poison_new_storage(false); }
};

using Failures = std::vector<std::string>;

void compare(const Run& run, const Run& reference, double tolerance, const std::string& what,
             Failures& failures) {
  const auto one = [&](const Tensor& a, const Tensor& b, const std::string& which) {
    const double error = relative_error(a, b);
    if (!(error <= tolerance))
      failures.push_back(what + ": " + which + " is off by " + std::to_string(error));
  };
  one(run.output, reference.output, "the output");
  for (size_t i = 0; i < run.gradients.size(); ++i)
    one(run.gradients[i], reference.gradients[i], "the gradient of input " + std::to_string(i));
}

void check_accumulation(const OpCase& op_case, const Run& once, Failures& failures) {
  const Poisoned poisoned;
  const std::vector<Tensor> inputs = leaves(op_case, DType::f64);
  backward(op_case.function, inputs);
  for (const Tensor& input : inputs) {
    input.grad().fill(std::numeric_limits<double>::quiet_NaN());
    input.zero_grad();
  }
  for (const double times : {1.0, 2.0}) {
    backward(op_case.function, inputs);
    for (size_t i = 0; i < inputs.size(); ++i) {
      Tensor expected = once.gradients[i].clone();
      for (int64_t k = 0; k < expected.elements(); ++k) expected.data<double>()[k] *= times;
      if (!(relative_error(inputs[i].grad(), expected) <= 1e-12))
        failures.push_back("backward " + std::to_string(static_cast<int>(times)) +
                           " times leaves another gradient in input " + std::to_string(i) +
                           " than it should add");
    }
  }
}

OpCase rounded_to_bf16(OpCase op_case) {
  for (Tensor& input : op_case.inputs) input = input.to(DType::bf16).to(DType::f64);
  return op_case;
}

void check_types(const OpCase& op_case, const Run& reference, Failures& failures) {
  compare(run_case(op_case, op_case.function, DType::f32), reference, op_case.f32_tolerance, "f32", failures);
  const OpCase rounded = rounded_to_bf16(op_case);
  compare(run_case(rounded, op_case.function, DType::bf16), run_case(rounded, op_case.function, DType::f64),
          op_case.bf16_tolerance, "bf16", failures);
}

constexpr int64_t short_chunk = 3;  // elements: no divisor of a vector, a tile, or most of the cases' sizes

// Demands that the forward and the backward pass each share at least one loop among threads, so that the
// comparison of thread counts is not of one chunk with itself.
void check_splits(const OpCase& op_case, Failures& failures) {
  const SmallChunks chunks(short_chunk);
  const std::vector<Tensor> inputs = leaves(op_case, DType::f32);
  Tape tape;
  const int64_t start = chunks.split_loops();
  const Tensor y = op_case.function(inputs);
  const int64_t forward = chunks.split_loops();
  const Tensor dy = random_tensor(y.shape(), cotangent_seed).to(y.dtype());
  const int64_t before_backward = chunks.split_loops();
  tape.backward(y, dy);
  const auto judge = [&](int64_t loops, const std::string& reason, const std::string& pass) {
    if (loops == 0 && reason.empty())
      failures.push_back("no loop of the " + pass + " pass has more than one chunk of " +
                         std::to_string(short_chunk) + " elements");
    if (loops > 0 && !reason.empty())
      failures.push_back("the " + pass + " pass has several chunks, though the case says: " + reason);
  };
  judge(forward - start, op_case.unsplit_forward, "forward");
  judge(chunks.split_loops() - before_backward, op_case.unsplit_backward, "backward");
}

// Repeats the checks with short chunks, against f64 in whole ones, and compares one thread with many bit by
// bit.
void check_threads(const OpCase& op_case, const Run& reference, Failures& failures) {
  check_splits(op_case, failures);
  const SmallChunks chunks(short_chunk);
  compare(run_case(op_case, op_case.function, DType::f64), reference, 1e-12, "f64 in short chunks", failures);
  check_accumulation(op_case, reference, failures);
  const Run many = run_case(op_case, op_case.function, DType::f32);
  compare(many, reference, op_case.f32_tolerance, "f32 in short chunks", failures);
  tbb::task_arena alone(1);
  const Run one = alone.execute([&] { return run_case(op_case, op_case.function, DType::f32); });
  if (!same_bits(one, many)) failures.push_back("one thread and many give different bits");
}

}  // namespace

double relative_error(const Tensor& a, const Tensor& b) {
  if (!a.defined() || !b.defined() || a.shape() != b.shape()) return std::numeric_limits<double>::infinity();
  const std::vector<double> x = a.values(), y = b.values();
  double difference = 0, size = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    if (x[i] == y[i] || (std::isnan(x[i]) && std::isnan(y[i]))) continue;
    const double d = std::abs(x[i] - y[i]);
    if (!(d <= difference)) difference = std::isnan(d) ? std::numeric_limits<double>::infinity() : d;
  }
  for (const double value : y)
    if (std::isfinite(value)) size = std::max(size, std::abs(value));
  return difference == 0 ? 0 : difference / std::max(size, std::numeric_limits<double>::min());
}

Run run_case(const OpCase& op_case, const OpCase::Function& function, DType dtype, Device device) {
  const std::vector<Tensor> inputs = leaves(op_case, dtype, device);
  Run run{backward(function, inputs), {}};
  for (const Tensor& input : inputs)
    run.gradients.push_back(input.grad().defined() ? input.grad()
                                                   : Tensor::zeros(input.shape(), dtype, device));
  return run;
}

std::vector<std::string> check_case_on(const OpCase& op_case, Device device) {
  Failures failures;
  const auto on_device = [&](const OpCase& c, DType dtype) { return run_case(c, c.function, dtype, device); };
  const Run reference = run_case(op_case, op_case.function, DType::f64);
  const std::string where = " on " + std::string(name(device));
  compare(on_device(op_case, DType::f64), reference, 1e-12, "f64" + where, failures);
  const Run single = on_device(op_case, DType::f32);
  compare(single, reference, op_case.f32_tolerance, "f32" + where, failures);
  const OpCase rounded = rounded_to_bf16(op_case);
  compare(on_device(rounded, DType::bf16), run_case(rounded, op_case.function, DType::f64),
          op_case.bf16_tolerance, "bf16" + where, failures);
  if (!same_bits(single, on_device(op_case, DType::f32)))
    failures.push_back("a repeat" + where + " gives different bits");
  return failures;
}

double gradient_error(const OpCase& op_case, Device device) {
  const Run run = run_case(op_case, op_case.function, DType::f64, device);
  const Tensor cotangent = random_tensor(run.output.shape(), cotangent_seed);
  std::vector<Tensor> inputs;
  for (const Tensor& input : op_case.inputs) inputs.push_back(input.clone());
  double worst = 0;
  for (size_t i = 0; i < inputs.size(); ++i)
    worst =
        std::max(worst, relative_error(run.gradients[i], numeric_gradient(op_case, inputs, i, cotangent)));
  return worst;
}

std::vector<std::string> check_case(const OpCase& op_case) {
  Failures failures;
  const double error = gradient_error(op_case);
  if (!(error <= op_case.tolerance)) {
    std::ostringstream text;
    text << "the gradient is off by " << error << " from central differences";
    failures.push_back(text.str());
  }
  const Run reference = run_case(op_case, op_case.function, DType::f64);
  check_accumulation(op_case, reference, failures);
  check_types(op_case, reference, failures);
  if (op_case.plain)
    compare(run_case(op_case, op_case.plain, DType::f64), reference, 1e-12, "the plain twin", failures);
  check_threads(op_case, reference, failures);
  return failures;
}

}  // namespace tessera
