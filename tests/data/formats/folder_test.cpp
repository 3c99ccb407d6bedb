#include "data/formats/folder.h"

#include <sys/stat.h>

#include "data/formats/idx.h"
#include "tests/data/files.h"
#include "tests/io/without_rights.h"

namespace tessera {

TEST_CASE("folder: lines end as on any system, and empty ones at the end are none") {
  const TemporaryFolder folder;
  const auto lines = [&](const std::string& text) {
    put(folder / "x", text);
    return read_lines(folder / "x");
  };
  CHECK(lines("one\r\n\ntwo") == std::vector<std::string>{"one", "", "two"});
  CHECK(lines("\r\nend\n\n\n") == std::vector<std::string>{"", "end"});
  CHECK(lines("\n\n").empty());
  CHECK(lines("").empty());
  check_refused([&] { lines(std::string(250001, '\n')); },
                "250001 lines, more than the 250000 that are read");
  check_refused([&] { lines(std::string((size_t{1} << 24) + 1, 'x')); }, "16777217 bytes, more than");
}

TEST_CASE("folder: entries in the order of their bytes, hidden ones left out") {
  const TemporaryFolder folder;
  for (const char* name : {"b", "a", "Z", ".hidden", "\xc3\xa9"}) put(folder / name, "x");
  std::vector<std::string> names;
  for (const auto& path : list_folder(folder.path())) names.push_back(path.filename());
  CHECK(names == std::vector<std::string>{"Z", "a", "b", "\xc3\xa9"});
  check_refused([&] { list_folder(folder / "none"); }, "none: no such folder");
}

TEST_CASE("folder: what may not be read is refused with the reason") {
  const TemporaryFolder folder;
  chmod(folder.path().c_str(), 0755);
  std::filesystem::create_directory(folder / "closed");
  put(folder / "secret", "x");
  chmod((folder / "closed").c_str(), 0);
  chmod((folder / "secret").c_str(), 0);
  const WithoutRights someone;
  check_refused([&] { list_folder(folder / "closed"); }, "closed: cannot be listed: Permission denied");
  check_refused([&] { read_idx(folder / "secret", 1); }, "secret: cannot be opened");
}

TEST_CASE("folder: a data set is found in the folder or in its usual one, or the hint is given") {
  const TemporaryFolder folder;
  const auto find = [&](const std::filesystem::path& dir) {
    return find_root("set", dir, "set-1.0", "marker", "unpack it");
  };
  check_refused([&] { find(""); }, "set: no data folder was given; unpack it");
  check_refused([&] { find(folder / "x"); },
                "set: " + (folder / "x").string() + " is not a folder; unpack it");
  check_refused([&] { find(folder.path()); }, "set: neither ", "set-1.0 holds marker; unpack it");
  put(folder / "set-1.0/marker", std::vector<uint8_t>{});
  CHECK(find(folder.path()) == folder / "set-1.0");
  CHECK(find(folder / "set-1.0") == folder / "set-1.0");
}

}  // namespace tessera
