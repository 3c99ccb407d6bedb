#include "apps/training/train_state.h"

#include <nlohmann/json.hpp>

#include "tests/fuzz/input.h"
#include "tests/fuzz/targets.h"

// The run's position, which state.safetensors holds beside its tensors.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace tessera;
  const std::string text(reinterpret_cast<const char*>(data), size), where = "state.safetensors";
  fuzz::may_refuse(where, [&] {
    const Position position = read_position(parse_json(text, where), where);
    read_position(to_json(position), where);
  });
  return 0;
}
