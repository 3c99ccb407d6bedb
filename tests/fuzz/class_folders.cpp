#include "data/sets/image_folder.h"
#include "tests/fuzz/input.h"
#include "tests/fuzz/targets.h"

// Each line is the name of a class folder with one picture, or of a picture that lies there.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace tessera;
  static const std::vector<uint8_t> picture = encode_png(Image(8, 8));
  constexpr size_t most_bytes = 1024, longest_name = 200;
  const fuzz::Folder folder;
  const std::string text(reinterpret_cast<const char*>(data), std::min(size, most_bytes));
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    const std::string name = text.substr(at, std::min(end - at, longest_name));
    at = end + 1;
    const bool stays = !name.empty() && name != "." && name != ".." && name[0] != '/' &&
                       name.find('\0') == std::string::npos && name.find("../") == std::string::npos;
    std::error_code refused;  // by the file system, such as a file in the place of a folder
    if (stays) std::filesystem::create_directories(folder.path() / name, refused);
    if (stays && !refused)
      std::ofstream(folder.path() / name / "1.png", std::ios::binary)
          .write(reinterpret_cast<const char*>(picture.data()), std::ssize(picture));
  }
  fuzz::may_refuse(folder.path(), [&] {
    const Dataset dataset = open_image_folder(folder.path(), {});
    Image image;
    for (int64_t i = 0; i < dataset.train->size(); ++i) dataset.train->image(i, image);
  });
  return 0;
}
