#include "engine/nn/scope.h"

#include "engine/core/dispatch.h"

namespace tessera {

namespace {

uint64_t fnv1a(std::string_view text) {
  uint64_t hash = 0xcbf29ce484222325u;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  return hash;
}

}  // namespace

Scope Scope::operator/(std::string_view name) const {
  Scope inner = *this;
  inner.path_ = joined(name);
  return inner;
}

Scope Scope::with(LinearRule rule) const {
  Scope changed = *this;
  changed.linear_rule_ = rule;
  return changed;
}

std::string Scope::joined(std::string_view name) const {
  return path_.empty() ? std::string(name) : path_ + "." + std::string(name);
}

Tensor Scope::make(std::string_view name, const Shape& shape, const Init& init, Kind kind) const {
  const std::string full = joined(name);
  Tensor tensor = Tensor::empty(shape, kind == Kind::statistic ? wide(dtype_) : dtype_, device_);
  if (!DryRun::active()) {
    Random own = random_.split(fnv1a(full));
    init(tensor, own);
  }
  if (kind == Kind::parameter) tensor.require_grad();
  parameters_->add({full, tensor, kind == Kind::parameter, kind == Kind::statistic});
  return tensor;
}

Tensor Scope::parameter(std::string_view name, const Shape& shape, const Init& init) const {
  return make(name, shape, init, Kind::parameter);
}

Tensor Scope::buffer(std::string_view name, const Shape& shape, const Init& init) const {
  return make(name, shape, init, Kind::buffer);
}

Tensor Scope::statistic(std::string_view name, const Shape& shape, const Init& init) const {
  return make(name, shape, init, Kind::statistic);
}

}  // namespace tessera
