#include "engine/autograd/tape.h"

#include <algorithm>
#include <atomic>

#include "engine/autograd/accumulate_kernels.h"
#include "engine/core/device_backend.h"
#include "engine/core/dispatch.h"

namespace tessera {

namespace {

// Counted over all threads, so that no value of one thread's tape passes for another's.
std::atomic<uint64_t> tapes_made{0};

void accumulate(const Tensor& sum, const Tensor& addend) {
  dispatch(sum, "accumulate", [&]<class Dev, class T>() {
    AccumulateKernels<Dev>::add(sum.data<T>(), addend.data<T>(), sum.elements());
  });
}

// Tells the device of a backward pass, and its end, whichever way it ends.
class BackwardPass {
 public:
  explicit BackwardPass(Device device) : on_(DryRun::active() ? nullptr : &backend(device)) {
    if (on_) on_->begin_backward();
  }
  ~BackwardPass() {
    try {
      if (on_ && !ended_) on_->end_backward();
    } catch (const Error&) {
    }  // after another error, which is the one to report
  }
  BackwardPass(const BackwardPass&) = delete;
  BackwardPass& operator=(const BackwardPass&) = delete;

  void end() {
    ended_ = true;
    if (on_) on_->end_backward();
  }

 private:
  DeviceBackend* on_;
  bool ended_ = false;
};

void before_reading(const Tensor& gradient) {
  if (!DryRun::active()) backend(gradient.device()).before_reading(gradient.raw());
}

}  // namespace

Tape::Tape() : number_(++tapes_made) {}

// The innermost scope counts, so a NoRecording hides the tapes around it.
Tape* Tape::recording() { return TapeScope::current() ? TapeScope::current()->tape() : nullptr; }

int Tape::new_slot(const Tensor& value, std::shared_ptr<Leaf> leaf) {
  slots_.push_back({value.shape(), value.dtype(), value.device(), {}, std::move(leaf), keep_all_});
  return static_cast<int>(slots_.size()) - 1;
}

int Tape::slot_of(const Tensor& input) {
  if (const auto& leaf = input.leaf()) {
    if (leaf->place.tape != number_) leaf->place = {number_, new_slot(input, leaf)};
    return leaf->place.slot;
  }
  return input.place().tape == number_ ? input.place().slot : -1;
}

const Tape::Slot& Tape::slot_at(const Tensor& x, const char* what) const {
  const Tensor::Place place = x.leaf() ? x.leaf()->place : x.place();
  check(place.tape == number_ && place.slot >= 0, "tape: ", what, " of ", x.shape(),
        ", which this tape did not record; was it made before the tape, or detached?");
  return slots_[static_cast<size_t>(place.slot)];
}

void Tape::backward(const Tensor& loss) {
  check(loss.elements() == 1, "tape: backward from ", loss.shape(),
        " needs its gradient; a loss has one element");
  backward(loss, Tensor::full(loss.shape(), 1.0, loss.dtype(), loss.device()));
}

void Tape::backward(const Tensor& y, const Tensor& dy) {
  check(!read_, "tape: backward a second time; a tape is read once, record the step again");
  slot_at(y, "backward");
  check(dy.elements() == y.elements() && dy.dtype() == y.dtype(), "tape: gradient ", dy.dtype(), " ",
        dy.shape(), " for ", y.dtype(), " ", y.shape());
  check(!y.is_leaf(), "tape: backward from a leaf: no op was recorded");
  read_ = true;
  slots_[static_cast<size_t>(y.place().slot)].grad = dy.detach();
  BackwardPass pass(dy.device());
  for (auto step = steps_.rbegin(); step != steps_.rend(); ++step) {
    Slot& output = slots_[static_cast<size_t>(step->output)];
    if (output.grad.defined()) {
      before_reading(output.grad);
      Gradients gradients(*this, *step);
      step->backward(gradients);
      gradients.add_spares();
      Observer::tell(BackwardEvent{*step->op, step->path, step->macs, step->bytes});
    }
    step->backward = nullptr;
    if (!output.keep) output.grad = {};
  }
  pass.end();
}

void Tape::keep(const Tensor& x) {
  if (x.is_leaf()) return;  // a leaf keeps its gradient itself
  slot_at(x, "keep");
  slots_[static_cast<size_t>(x.place().slot)].keep = true;
}

Tensor Tape::gradient(const Tensor& x) const {
  if (x.is_leaf()) return x.grad();
  const Slot& slot = slot_at(x, "gradient");
  check(slot.keep, "tape: the gradient of ", x.shape(), " was not kept; call keep() before backward()");
  return slot.grad.defined() ? slot.grad.reshape(x.shape()) : Tensor();
}

Tensor Tape::gradient_of_step(size_t i) const {
  return slots_[static_cast<size_t>(steps_.at(i).output)].grad;
}

int Tape::slot_of_known(const Tensor& x) const {
  if (!x.defined()) return -1;
  const Tensor::Place place = x.leaf() ? x.leaf()->place : x.place();
  return place.tape == number_ ? place.slot : -1;
}

Tape::Step* Tape::step_that_made(const Tensor& x) {
  const int slot = slot_of_known(x);
  const auto made_it = [slot](const Step& step) { return step.output == slot; };
  const auto step = std::find_if(steps_.rbegin(), steps_.rend(), made_it);
  return step == steps_.rend() ? nullptr : &*step;
}

void name_value(const Tensor& x, std::string_view role) {
  Tape* tape = Tape::recording();
  if (!tape || !tape->keep_all_) return;
  if (Tape::Step* step = tape->step_that_made(x)) step->role = role;
}

const Tensor& Gradients::dy() const { return tape_.slots_[static_cast<size_t>(step_.output)].grad; }

bool Gradients::wants(int i) const { return step_.inputs[static_cast<size_t>(i)] >= 0; }

// NOLINTNEXTLINE(performance-unnecessary-value-param): a handle, whose copy is a reference counted
void Gradients::add(int i, Tensor dx) {
  if (!wants(i)) return;
  const int place = step_.inputs[static_cast<size_t>(i)];
  Tape::Slot& slot = tape_.slots_[static_cast<size_t>(place)];
  check(dx.elements() == slot.shape.elements() && dx.dtype() == slot.dtype, step_.op->name, ": gradient ",
        dx.dtype(), " ", dx.shape(), " for input ", i, ", ", slot.dtype, " ", slot.shape);
  if (!slot.leaf && !slot.grad.defined()) {  // the first gradient to arrive: take it as it is, without a copy
    slot.grad = dx.reshape(slot.shape).detach();
    slot.lent = true;
    return;
  }
  const Into sum = target(place);
  if (sum.add)
    accumulate(sum.grad, dx);
  else if (!DryRun::active())
    sum.grad.copy_from(dx);
}

// One kernel may write the gradients of several inputs. Where two of them are one tensor, the second one gets
// memory of its own, which add_spares() adds at the step's end.
Gradients::Into Gradients::into(int i) {
  const int place = step_.inputs[static_cast<size_t>(i)];
  if (std::find(given_.begin(), given_.end(), place) != given_.end()) {
    const Tape::Slot& slot = tape_.slots_[static_cast<size_t>(place)];
    return {spares_.emplace_back(place, Tensor::empty(slot.shape, slot.dtype, slot.device)).second, false};
  }
  given_.push_back(place);
  return target(place);
}

void Gradients::add_spares() {
  for (const auto& [place, spare] : spares_) {
    before_reading(spare);
    accumulate(target(place).grad, spare);
  }
}

// A leaf's own gradient or the slot's, allocated if need be and not shared with any other tensor.
Gradients::Into Gradients::target(int slot) {
  Tape::Slot& to = tape_.slots_[static_cast<size_t>(slot)];
  Tensor& grad = to.leaf ? to.leaf->grad : to.grad;
  bool add = grad.defined();
  if (to.leaf) {
    add = add && !to.leaf->stale;
    to.leaf->stale = false;
  }
  check(!add || grad.dtype() == to.dtype, "tape: a leaf's gradient is lent by its ", grad.dtype(),
        " copy; call zero_grad() before the next backward pass");
  if (add) before_reading(grad);
  if (!grad.defined())
    grad = Tensor::empty(to.shape, to.dtype, to.device);
  else if (add && to.lent && grad.shared())
    grad = DryRun::active() ? Tensor::empty(to.shape, to.dtype, to.device) : grad.clone();
  to.lent = false;
  return {grad.reshape(to.shape), add};
}

bool tape_keeps_all() {
  const Tape* tape = Tape::recording();
  return tape && tape->keeps_all();
}

bool ops_are_seen() { return Tape::recording() || Observer::active(); }

namespace {

int64_t bytes_of(const Tensor& x) { return x.defined() ? static_cast<int64_t>(x.bytes()) : 0; }

}  // namespace

bool wants_gradient(Inputs inputs) {
  const Tape* tape = Tape::recording();
  return tape && std::any_of(inputs.begin(), inputs.end(),
                             [](const Tensor& input) { return input.is_leaf() || input.place().tape != 0; });
}

Tensor record(OpName op, Tensor y, Inputs inputs, Backward backward, int64_t macs) {
  return record(op, std::move(y), std::span(inputs.begin(), inputs.size()), std::move(backward), macs);
}

Tensor record(OpName op, Tensor y, std::span<const Input> inputs, Backward backward, int64_t macs) {
  int64_t bytes = bytes_of(y);
  for (const Tensor& input : inputs) bytes += bytes_of(input);
  Observer::tell({*op, y, macs, bytes});
  for (const Tensor& input : inputs) {
    const uint64_t number = input.place().tape;
    const TapeScope* scope = number == 0 ? nullptr : TapeScope::current();
    while (scope && !(scope->tape() && scope->tape()->number_ == number)) scope = scope->outer();
    if (number != 0 && !scope)
      fail(op->name, ": input ", input.shape(),
           " is a value of a tape that has ended, its gradient can flow no ",
           "more; keep the tape alive, or detach() the value");
  }
  Tape* tape = Tape::recording();
  if (!tape) return y;
  std::vector<int> slots;
  for (const Tensor& input : inputs) slots.push_back(input.defined() ? tape->slot_of(input) : -1);
  if (std::all_of(slots.begin(), slots.end(), [](int slot) { return slot < 0; })) return y;
  check(!tape->read_, op->name, ": its tape was read already; a new step needs a new tape");
  const int output = tape->new_slot(y, nullptr);
  int64_t gradient_bytes = bytes_of(y);
  for (size_t i = 0; i < slots.size(); ++i) gradient_bytes += slots[i] < 0 ? 0 : bytes_of(inputs[i]);
  tape->steps_.push_back(
      {op, ModuleScope::path(), std::move(slots), output, std::move(backward), macs, gradient_bytes});
  if (tape->keep_all_) {
    Tape::Step& step = tape->steps_.back();
    step.operands.assign(inputs.begin(), inputs.end());
    step.result = y.detach();
  }
  y.set_place({tape->number_, output});
  return y;
}

}  // namespace tessera
