#include "data/fetch/unpack.h"

#include "tests/data/fetch/archives.h"
#include "tests/io/full_disk.h"

namespace tessera {

namespace {

namespace fs = std::filesystem;

}  // namespace

TEST_CASE("unpack: files and folders, whole or not at all") {
  if (!can_fetch()) return;
  const TemporaryFolder folder;
  const std::string good =
      tar_member("set/", "", '5') + tar_member("set/a/one", letters(1000)) + tar_member("./set/two", "2");
  put(folder / "good.tar", good + tar_end());
  unpack(folder / "good.tar", folder.path(), "set", 1 << 20);
  CHECK(bytes_of(folder / "set/a/one") == letters(1000));
  CHECK(bytes_of(folder / "set/two") == "2");
  CHECK(folder.entries() == 2);
  check_refused([&] { unpack(folder / "good.tar", folder.path(), "set", 1 << 20); }, "set", "put in place");
  check_refused([&] { unpack(folder / "good.tar", folder.path(), "other", 1 << 20); },
                "holds no folder other");
  check_refused([&] { unpack(folder / "good.tar", folder.path(), "more", 1000); }, "more than 1000 bytes");
  check_refused([&] { unpack(folder / "absent.tar", folder.path(), "more", 1000); }, "no such file");
  put(folder / "good.tar", good.substr(0, 1200));
  check_refused([&] { unpack(folder / "good.tar", folder.path(), "more", 1 << 20); }, "damaged");
  put(folder / "good.tar", letters(5000));
  check_refused([&] { unpack(folder / "good.tar", folder.path(), "more", 1 << 20); }, "good.tar");
  CHECK(folder.entries() == 2);
}

TEST_CASE("unpack: nothing leaves the folder") {
  if (!can_fetch()) return;
  const TemporaryFolder folder;
  fs::create_directory(folder / "in");
  const auto refused = [&](const std::string& member, const std::string& why) {
    put(folder / "bad.tar", tar_member("set/good", "1") + member + tar_end());
    check_refused([&] { unpack(folder / "bad.tar", folder / "in", "set", 1 << 20); }, "bad.tar", why);
    CHECK(fs::is_empty(folder / "in"));
    CHECK(folder.entries() == 2);
  };
  refused(tar_member("../evil", "1"), "leads out");
  refused(tar_member("set/../../evil", "1"), "leads out");
  refused(tar_member(folder / "evil", "1"), "absolute");
  refused(tar_member("set/link", "", '2', "/etc"), "link");
  refused(tar_member("set/link", "", '1', "set/good"), "link");
  refused(tar_member("set/pipe", "", '6'), "device");
  refused(tar_member("", "1"), "holds an entry without a name");
}

TEST_CASE("unpack: its progress is told, and what a killed run left is no hindrance") {
  if (!can_fetch()) return;
  const TemporaryFolder folder;
  std::string tar;
  for (int i = 0; i < 130; ++i) tar += tar_member("set/" + std::to_string(i), "x");
  put(folder / "set.tar", tar + tar_end());
  put(folder / ".set.unpacking/set/old", std::vector<uint8_t>{1});
  int64_t calls = 0, done = 0, total = 0;
  unpack(folder / "set.tar", folder.path(), "set", 1 << 20,
         [&](int64_t d, int64_t t) { ++calls, done = d, total = t; });
  CHECK(calls == 2);
  CHECK((done > 0 && done <= total && total == static_cast<int64_t>(fs::file_size(folder / "set.tar"))));
  CHECK(std::distance(fs::directory_iterator(folder / "set"), {}) == 130);
}

TEST_CASE("unpack: what cannot be made or written is named, and nothing is kept") {
  if (!can_fetch()) return;
  const TemporaryFolder folder;
  const auto refused = [&](const fs::path& to, const std::string& why) {
    check_refused([&] { unpack(folder / "set.tar", to, "set", 1 << 20); }, why);
    CHECK_FALSE(fs::exists(to / "set"));
  };
  put(folder / "set.tar", tar_member("set", "a file") + tar_member("set/in", "it") + tar_end());
  refused(folder.path(), "its folder cannot be made: Not a directory");
  put(folder / "set.tar", tar_member("set/big", letters(100000)) + tar_end());
  refused(folder / "set.tar", ".set.unpacking: cannot be made: Not a directory");
  {
    const FullDisk full(5000);
    refused(folder.path(), "set/big: cannot be written: File too large");
  }
  const std::string cut = tar_member("set/big", letters(100000)).substr(0, 50000);
  put(folder / "set.tar", cut);
  refused(folder.path(), "set.tar: is damaged: ");
  CHECK(folder.entries() == 1);
}

}  // namespace tessera
