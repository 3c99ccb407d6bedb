#include "engine/io/file.h"

#include <doctest/doctest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "engine/core/error.h"
#include "tests/error_of.h"
#include "tests/io/full_disk.h"
#include "tests/io/temporary_folder.h"
#include "tests/io/without_rights.h"

namespace fs = std::filesystem;
using namespace tessera;

namespace {

std::string write_error(const fs::path& path, const std::string& bytes = "new") {
  return error_of([&] { write_file_atomically(path, bytes); });
}

mode_t mode_of(const fs::path& path) {
  struct stat status {};
  stat(path.c_str(), &status);
  return status.st_mode & 07777;
}

}  // namespace

TEST_CASE("a file is written, read back and replaced, and nothing else is left in its folder") {
  const TemporaryFolder folder;
  const std::string bytes("a\0b\n\xff", 5), first = "one ", second = "two";
  write_file_atomically(folder / "x", bytes);
  CHECK(read_text(folder / "x") == bytes);
  write_file_atomically(folder / "x", std::vector<std::string_view>{first, "", second});
  CHECK(read_text(folder / "x") == "one two");
  write_file_atomically(folder / "x", "");
  CHECK(read_text(folder / "x").empty());
  CHECK(folder.entries() == 1);
}

TEST_CASE("no more than the limit is taken into memory") {
  const TemporaryFolder folder;
  write_file_atomically(folder / "x", "four");
  CHECK(read_bytes(folder / "x", 4) == std::vector<uint8_t>{'f', 'o', 'u', 'r'});
  const std::string refusal = error_of([&] { read_bytes(folder / "x", 3); });
  CHECK(refusal.find("4 bytes, more than the 3") != std::string::npos);
}

TEST_CASE("a new file has the mode of any new file, a replaced one keeps its own") {
  const TemporaryFolder folder;
  write_file_atomically(folder / "new", "1");
  put(folder / "plain", "1");
  CHECK(mode_of(folder / "new") == mode_of(folder / "plain"));
  chmod((folder / "plain").c_str(), 0640);
  write_file_atomically(folder / "plain", "2");
  CHECK(mode_of(folder / "plain") == 0640);
  CHECK(bytes_of(folder / "plain") == "2");
}

TEST_CASE("a link is followed, and stays one") {
  const TemporaryFolder folder;
  fs::create_directory(folder / "runs");
  put(folder / "runs/real", "old");
  fs::create_symlink("runs/real", folder / "link");
  write_file_atomically(folder / "link", "new");
  CHECK(fs::is_symlink(folder / "link"));
  CHECK(bytes_of(folder / "runs/real") == "new");
}

TEST_CASE("a relative path is written in the folder of work, whatever the length of its name") {
  const TemporaryFolder folder;
  const fs::path before = fs::current_path();
  fs::current_path(folder.path());
  const std::string longest(255, 'n');
  CHECK(write_error(longest) == "");
  fs::current_path(before);
  CHECK(bytes_of(folder / longest) == "new");
}

TEST_CASE("where a file cannot be written, the error says why and the old one is whole") {
  const TemporaryFolder folder;
  put(folder / "x", "old");
  fs::create_directory(folder / "d");
  CHECK(write_error(folder / "none/x").find("none/x: cannot make a file in its folder: No such file") !=
        std::string::npos);
  CHECK(write_error(folder / "x/y").find("Not a directory") != std::string::npos);
  CHECK(write_error(folder / "d").find("/d: is a folder") != std::string::npos);
  CHECK(write_error("/dev/null") == "/dev/null: is not a regular file, so it cannot be replaced");
  CHECK(write_error("/proc/x").find("/proc/x: cannot make a file in its folder: ") ==
        0);  // unwritable, even for root
  CHECK(write_error(folder / std::string(256, 'n')).find("File name too long") != std::string::npos);
  CHECK(bytes_of(folder / "x") == "old");
  CHECK(folder.entries() == 2);
}

TEST_CASE("a disk that fills up while it is written to leaves the old file and nothing beside it") {
  const TemporaryFolder folder;
  put(folder / "x", "old");
  std::string said;
  {
    const FullDisk full(1000);
    said = write_error(folder / "x", std::string(5000, 'n'));
  }
  CHECK(said.find("/x: cannot write it: File too large; what was there before is untouched") !=
        std::string::npos);
  CHECK(bytes_of(folder / "x") == "old");
  CHECK(folder.entries() == 1);
}

TEST_CASE("what is no readable file is refused by name") {
  const TemporaryFolder folder;
  const auto error = [](const fs::path& path) { return error_of([&] { read_text(path); }); };
  CHECK(error(folder / "none").find("/none: cannot open it: No such file or directory") != std::string::npos);
  CHECK(error(folder.path()).find(": is a folder, wanted a file") != std::string::npos);
  mkfifo((folder / "pipe").c_str(), 0600);
  CHECK(error(folder / "pipe").find("/pipe: is not a regular file") != std::string::npos);
}

TEST_CASE("reading past the end says where it is") {
  const TemporaryFolder folder;
  put(folder / "x", "abc");
  const InputFile file(folder / "x");
  CHECK(file.size() == 3);
  char to[4] = {};
  file.read(1, to, 2);
  CHECK(std::string(to) == "bc");
  CHECK(error_of([&] { file.read(1, to, 4); }).find("/x: ends at byte 3, 2 more were wanted") !=
        std::string::npos);
}

TEST_CASE("a file that the disk cannot give is refused with its reason") {
  char byte = 0;
  CHECK(error_of([&] { InputFile("/proc/self/mem").read(0, &byte, 1); }) ==
        "/proc/self/mem: cannot read it: Input/output error");
}

TEST_CASE("a file that is write-protected, or another's, is neither opened nor replaced") {
  const TemporaryFolder folder;
  put(folder / "secret", "old");
  chmod((folder / "secret").c_str(), 0);
  put(folder / "shared", "old");
  chmod((folder / "shared").c_str(), 0666);
  chmod(folder.path().c_str(), 01777);  // as /tmp: anyone makes files, only their owners rename over them
  {
    const WithoutRights someone;
    CHECK(error_of([&] {
            read_text(folder / "secret");
          }).find("/secret: cannot open it: Permission denied") != std::string::npos);
    CHECK(write_error(folder / "secret").find("/secret: is write-protected (Permission denied)") !=
          std::string::npos);
    if (someone.another_user())
      CHECK(write_error(folder / "shared")
                .find("/shared: cannot put it in place: Operation not permitted; "
                      "what was there before is untouched") != std::string::npos);
  }
  if (geteuid() == 0) CHECK(bytes_of(folder / "shared") == "old");
  CHECK(folder.entries() == 2);
}

TEST_CASE("whether a file can be written is known before there is anything to write") {
  const TemporaryFolder folder;
  put(folder / "old", "old");
  expect_writable(folder / "old");
  expect_writable(folder / "new");
  CHECK(bytes_of(folder / "old") == "old");
  CHECK(folder.entries() == 1);
  const auto refused = [&](const std::filesystem::path& path) {
    return error_of([&] { expect_writable(path); });
  };
  CHECK(refused(folder.path()).find("is a folder, a file was to be written") != std::string::npos);
  CHECK(refused(folder / "none" / "x").find("No such file or directory") != std::string::npos);
}

TEST_CASE("a folder that may be written to but not read takes a file") {
  const TemporaryFolder folder;
  chmod(folder.path().c_str(), 0333);
  {
    const WithoutRights someone;
    CHECK(write_error(folder / "x") == "");
  }
  chmod(folder.path().c_str(), 0700);
  CHECK(bytes_of(folder / "x") == "new");
}

TEST_CASE("what a process that is gone left half written is removed, and nothing else") {
  const TemporaryFolder folder;
  const pid_t gone = fork();
  if (gone == 0) _exit(0);
  REQUIRE(waitpid(gone, nullptr, 0) == gone);
  const auto name = [](const std::string& writer) { return ".tessera-" + writer + "-0.partial"; };
  const std::string left = name(std::to_string(gone)), own = name(std::to_string(getpid()));
  for (const std::string& file : {left, own, name("1"), name("x"), std::string("x.partial"), left + ".old"})
    put(folder / file, "half");
  chmod(folder.path().c_str(), 0755);
  {
    const WithoutRights
        someone;  // for whom a signal to another's process is refused, which shows it is there
    remove_partial_files(folder.path());
  }
  if (geteuid() == 0) CHECK(folder.entries() == 6);
  remove_partial_files(folder.path());
  CHECK_FALSE(std::filesystem::exists(folder / left));
  CHECK(folder.entries() == 5);
  remove_partial_files(folder / "none");
}
