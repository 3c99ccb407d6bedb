#include "engine/optim/state.h"

#include <unordered_map>

#include "engine/core/error.h"

namespace tessera {

void load_state(const NamedTensors& own, const NamedTensors& given, const std::string& where) {
  std::unordered_map<std::string_view, const Tensor*> by_name;
  std::vector<std::string> known;
  for (const auto& [name, value] : own) known.push_back(name);
  const std::unordered_map<std::string_view, Tensor> own_by_name(own.begin(), own.end());
  for (const auto& [name, value] : given) {
    const auto at = own_by_name.find(name);
    if (at == own_by_name.end())
      fail(where, ": '", name, "' belongs to no state here", did_you_mean(name, known));
    const Tensor& target = at->second;
    check(value.dtype() == target.dtype() && value.shape() == target.shape(), where, ": '", name, "' is ",
          value.dtype(), " ", value.shape(), ", wanted ", target.dtype(), " ", target.shape());
    check(by_name.emplace(name, &value).second, where, ": '", name, "' is given twice");
  }
  for (const auto& [name, value] : own) check(by_name.contains(name), where, ": '", name, "' is missing");
  for (const auto& [name, value] : own) value.copy_from(by_name.at(name)->to(value.device()));
}

}  // namespace tessera
