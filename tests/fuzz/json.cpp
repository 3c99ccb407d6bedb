#include "engine/io/json.h"

#include <nlohmann/json.hpp>

#include "tests/fuzz/input.h"
#include "tests/fuzz/targets.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace tessera;
  const std::string text(reinterpret_cast<const char*>(data), size);
  fuzz::may_refuse("input.json", [&] {
    const Json document = parse_json(text, "input.json");
    // what is read must survive writing and reading again
    const std::string written = document.dump(-1, ' ', false, Json::error_handler_t::replace);
    if (parse_json(written, "input.json").dump(-1, ' ', false, Json::error_handler_t::replace) != written)
      std::abort();
  });
  return 0;
}
