#include "data/sets/imagenet.h"
#include "data/sets/tiny_imagenet.h"
#include "tests/fuzz/input.h"
#include "tests/fuzz/targets.h"

namespace tessera {

namespace {

struct Text {
  std::string name, good;
};
const std::vector<Text> texts{{"tiny/wnids.txt", "n02\nn01\n"},
                              {"tiny/words.txt", "n01\tone, first\nn02\ttwo\nn03\tthree\n"},
                              {"tiny/val/val_annotations.txt", "val_0.JPEG\tn02\t0\t0\t1\t1\n"},
                              {"big/LOC_val_solution.csv", "ImageId,P\nv_1,n00000002 1 2 3 4\n"},
                              {"big/synset_words.txt", "n00000001 one\nn00000002 two\n"}};

// Writes the folders around the texts. Images are only listed, so they are empty files.
void plant(const fuzz::Folder& folder) {
  for (const char* name :
       {"tiny/train/n01/images/n01_0.JPEG", "tiny/train/n02/images/n02_0.JPEG", "tiny/val/images/val_0.JPEG",
        "big/train/n00000001/n00000001_1.JPEG", "big/train/n00000002/n00000002_1.JPEG", "big/val/v_1.JPEG"})
    folder.put(name, "");
  for (const Text& text : texts) folder.put(text.name, text.good);
}

}  // namespace

}  // namespace tessera

// The first byte selects the text that the other bytes replace.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace tessera;
  static const fuzz::Folder folder;
  static const bool planted = (plant(folder), true);
  if (size == 0 || !planted) return 0;
  const Text& text = texts[data[0] % texts.size()];
  folder.put(text.name, std::string(reinterpret_cast<const char*>(data) + 1, size - 1));
  const bool tiny = text.name.starts_with("tiny");
  fuzz::may_refuse(folder.path(), [&] {
    if (tiny)
      open_tiny_imagenet(folder.path() / "tiny", {});
    else
      open_imagenet(folder.path() / "big", {}, 0);
  });
  folder.put(text.name, text.good);
  return 0;
}
