#include "data/sets/cifar.h"

#include "tests/fuzz/input.h"
#include "tests/fuzz/targets.h"

// The input is the training file; the format expects one record in it.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace tessera;
  static const fuzz::Folder folder;
  static const CifarFormat format = [] {
    CifarFormat small = cifar100_format(false);
    small.train_records = small.test_records = 1;
    folder.put(small.test_file, std::string(3074, '\0'));
    std::string names;
    for (int k = 0; k < 100; ++k) names += "class" + std::to_string(k) + "\n";
    folder.put(small.names_file, names);
    return small;
  }();
  folder.put(format.train_files[0], std::string(reinterpret_cast<const char*>(data), size));
  fuzz::may_refuse(format.train_files[0], [&] { open_cifar(folder.path(), format); });
  return 0;
}
