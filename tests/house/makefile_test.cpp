#include <doctest/doctest.h>

#include <cstdlib>
#include <filesystem>
#include <string>

#include "tests/io/temporary_folder.h"

namespace fs = std::filesystem;

namespace {

// The Makefile beside a `cmake` of our own, whose "build" is a program that writes its arguments down, one
// call a line.
class Workshop {
 public:
  Workshop() {
    fs::create_directory(folder_ / "build");
    tessera::put(folder_ / "cmake",
                 "#!/bin/sh\n[ \"$1\" = --build ] || exit 0\n"
                 "printf '#!/bin/sh\\necho \"$@\" >> \"%s/calls\"\\n' '" +
                     folder_.path().string() + "' > \"$2/tessera\"\nchmod +x \"$2/tessera\"\n");
    fs::permissions(folder_ / "cmake", fs::perms::owner_all);
  }

  // What `make target` wrote; it must end well.
  std::string make(const std::string& target) const {
    const std::string folder = folder_.path().string(), out = folder + "/out";
    const int status =
        std::system(("cd '" TESSERA_SOURCE "' && env -u MAKEFLAGS PATH='" + folder + "':\"$PATH\" make " +
                     target + " PACKAGES= JOBS=2 BUILD='" + folder + "/build' >'" + out + "' 2>&1")
                        .c_str());
    const std::string said = tessera::bytes_of(out);
    CHECK_MESSAGE(status == 0, said);
    return said;
  }

  std::string calls() const { return tessera::bytes_of(folder_ / "calls"); }

 private:
  tessera::TemporaryFolder folder_;
};

}  // namespace

TEST_CASE("make demo, the README's first command, says how long it takes, trains and shows one pass") {
  const Workshop workshop;
  CHECK(workshop.make("demo").find(
            "about 5 minutes on 2 processors, then trains a small SL-ViT on built-in shapes, "
            "about 90 seconds.") != std::string::npos);
  CHECK(workshop.calls().starts_with("train --recipe demo --out runs/demo-"));
  CHECK(workshop.calls().find("\ninspect runs/demo-") != std::string::npos);
  CHECK(workshop.make("demo").find("up to date, then trains") != std::string::npos);
}

TEST_CASE("make demo-pictures trains on the photographs and shows one pass of them") {
  const Workshop workshop;
  workshop.make("demo-pictures");
  CHECK(
      workshop.calls().starts_with("train --recipe closeups --data data/closeups --out runs/demo-pictures-"));
  CHECK(workshop.calls().find("\ninspect runs/demo-pictures-") != std::string::npos);
}
