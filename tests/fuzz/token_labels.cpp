#include "data/token_labels.h"

#include "tests/fuzz/input.h"
#include "tests/fuzz/targets.h"

// The input is the map of the only image of a data set with three of a whole's five classes.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace tessera;
  static const fuzz::Folder folder;
  static const Dataset dataset = [] {
    Dataset one;
    one.class_names = {"a", "b", "c"};
    one.classes_of_whole = 5;
    one.train =
        std::make_shared<StoredSplit>(1, 1, 1, std::vector<uint8_t>(1), std::vector<int32_t>(1), "one");
    return one;
  }();
  folder.put("0.safetensors", std::string(reinterpret_cast<const char*>(data), size));
  fuzz::may_refuse("0.safetensors", [&] {
    const TokenLabels labels(folder.path(), dataset);
    std::vector<float> map(static_cast<size_t>(labels.shape().elements()));
    labels.read(0, map.data());
  });
  return 0;
}
