#include "apps/training/config.h"

#include "tests/fuzz/input.h"
#include "tests/fuzz/targets.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace tessera;
  const std::string text(reinterpret_cast<const char*>(data), size);
  fuzz::may_refuse("config.json", [&] {
    const TrainConfig config = read_train_config(parse_json(text, "config.json"), "config.json");
    read_train_config(to_json(config), "config.json");  // what is written can be read again
  });
  return 0;
}
