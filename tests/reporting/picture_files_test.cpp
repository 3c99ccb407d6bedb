#include "apps/reporting/picture_files.h"

#include <doctest/doctest.h>

#include "engine/core/error.h"
#include "tests/error_of.h"
#include "tests/io/temporary_folder.h"

namespace fs = std::filesystem;
using namespace tessera;

TEST_CASE("a folder stands for all its pictures, also those that cannot be read") {
  const TemporaryFolder folder;
  fs::create_directories(folder / "below/not-a-file.png");
  for (const char* name : {"b.JPG", "a.png", "w.webp", "t.gif", "notes.txt", "below/c.bmp"})
    put(folder / name, "");
  fs::create_symlink(folder / "nothing", folder / "x.png");
  const std::vector<std::string> files = picture_files({folder.path().string()});
  std::vector<std::string> wanted;
  for (const char* name : {"a.png", "b.JPG", "below/c.bmp", "t.gif", "w.webp", "x.png"})
    wanted.push_back((folder / name).string());
  CHECK(files == wanted);
}

TEST_CASE("a pattern stands for the files that match, a name for itself") {
  const TemporaryFolder folder;
  for (const char* name : {"a.png", "b.png", "c.txt"}) put(folder / name, "");
  CHECK(picture_files({(folder / "*.png").string()}).size() == 2);
  CHECK(picture_files({"none.png"}) == std::vector<std::string>{"none.png"});
  CHECK(error_of([&] { picture_files({(folder / "*.bmp").string()}); }).find("no file matches") !=
        std::string::npos);
  fs::remove(folder / "a.png");
  fs::remove(folder / "b.png");
  CHECK(error_of([&] { picture_files({folder.path().string()}); }).find("no .jpg, .jpeg, .png or .bmp") !=
        std::string::npos);
}
