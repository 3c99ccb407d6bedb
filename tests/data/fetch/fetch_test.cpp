#include "data/fetch/fetch.h"

#include "data/fetch/download.h"
#include "data/fetch/sums.h"
#include "data/formats/folder.h"
#include "data/registry.h"
#include "tests/data/fetch/archives.h"
#include "tests/data/fetch/http_server.h"
#include "tests/data/files.h"
#include "tests/io/full_disk.h"

namespace tessera {

namespace {

namespace fs = std::filesystem;

}  // namespace

TEST_CASE("download: whole, cut off and taken up again, from an older part") {
  if (!can_fetch()) return;
  HttpServer server;
  const TemporaryFolder folder;
  const std::string bytes = letters(100000), sum = md5_of(bytes);
  server.put("f", bytes);
  int64_t done = 0, total = 0;
  download(server.url() + "/f", folder / "whole", 100000, {sum},
           [&](int64_t d, int64_t t) { done = d, total = t; });
  CHECK(bytes_of(folder / "whole") == bytes);
  CHECK(done == 100000);
  CHECK(total == 100000);

  server.cut_after = 30000;
  server.cuts = 2;
  download(server.url() + "/f", folder / "cut", 100000, {sum});
  CHECK(bytes_of(folder / "cut") == bytes);
  CHECK(server.asked() == std::vector<std::string>{"", "", "bytes=30000-", "bytes=60000-"});

  put(folder / "older.part", bytes.substr(0, 77777));
  download(server.url() + "/f", folder / "older", 0, {sum});
  CHECK(bytes_of(folder / "older") == bytes);
  CHECK(server.asked().back() == "bytes=77777-");

  put(folder / "complete.part", bytes);  // no bytes are missing
  download(server.url() + "/f", folder / "complete", 100000, {sum});
  CHECK(bytes_of(folder / "complete") == bytes);
  CHECK(server.asked().size() == 5);
  CHECK(folder.entries() == 4);
}

TEST_CASE("download: a part of something else, and a server without ranges, mean a new start") {
  if (!can_fetch()) return;
  HttpServer server;
  const TemporaryFolder folder;
  const std::string bytes = letters(5000), sum = md5_of(bytes);
  server.put("f", bytes);
  put(folder / "a.part", std::string(3000, 'x'));
  download(server.url() + "/f", folder / "a", 5000, {sum});
  CHECK(bytes_of(folder / "a") == bytes);
  put(folder / "b.part", std::string(9000, 'x'));  // longer than the file, so the server answers 416
  download(server.url() + "/f", folder / "b", 5000, {sum});
  CHECK(bytes_of(folder / "b") == bytes);
  server.ranges = false;
  put(folder / "c.part", bytes.substr(0, 1000));
  download(server.url() + "/f", folder / "c", 5000, {sum});
  CHECK(bytes_of(folder / "c") == bytes);
  CHECK(folder.entries() == 3);
}

TEST_CASE("download: what goes wrong leaves nothing broken") {
  if (!can_fetch()) return;
  HttpServer server;
  const TemporaryFolder folder;
  const std::string bytes = letters(5000), sum = md5_of(bytes);
  server.put("f", bytes);
  check_refused([&] { download(server.url() + "/g", folder / "g", 0, {sum}); }, server.url() + "/g", "404");
  check_refused([&] { download(server.url() + "/f", folder / "f", 5000, {std::string(32, '0')}); },
                server.url() + "/f", sum, "nothing of it was kept");
  check_refused([&] { download(server.url() + "/f", folder / "f", 4000, {sum}); }, "4000",
                "nothing was kept");
  CHECK(folder.entries() == 0);

  server.cut_after = 0;
  server.cuts = 100;
  put(folder / "h.part", bytes.substr(0, 200));
  check_refused([&] { download(server.url() + "/f", folder / "h", 5000, {sum}); }, "breaks off",
                "200 bytes are kept");
  CHECK(bytes_of(folder / "h.part") == bytes.substr(0, 200));
  check_refused([&] { download("ftp://127.0.0.1/f", folder / "i", 0, {sum}); }, "cannot be reached");
  check_refused([&] { download(server.url() + "/f", folder / "none" / fs::path("f"), 0, {sum}); },
                "cannot be written");
}

TEST_CASE("download: offline") {
  if (!can_fetch()) return;
  const TemporaryFolder folder;
  std::string url;
  { url = HttpServer().url(); }
  check_refused([&] { download(url + "/f", folder / "f", 0, {}); }, url, "cannot be reached", "online",
                (folder / "f"), "--url");
}

TEST_CASE("fetch: an archive and a file, and once more") {
  if (!can_fetch()) return;
  HttpServer server;
  const TemporaryFolder folder;
  const std::string tar = tar_member("set/data.bin", letters(50000)) + tar_end(), loose = letters(77);
  server.put("set.tar", tar);
  server.put("loose.bin", loose);
  const auto size = static_cast<int64_t>(tar.size());
  const DatasetEntry set =
      set_of({{"http://unreachable.invalid/set.tar", size, md5_of(tar), true}}, "set", {"data.bin"});
  const auto [root, already_there] = fetch(set, folder / "new/data", {.mirror = server.url()});
  CHECK(root == folder / "new/data/set");
  CHECK(!already_there);
  CHECK(bytes_of(root / "data.bin") == letters(50000));
  CHECK(std::distance(fs::directory_iterator(folder / "new/data"), {}) == 1);  // the archive was removed
  for (const fs::path& dir : {folder / "new/data", root}) {
    const Fetched again = fetch(set, dir, {});
    CHECK(again.folder == root);
    CHECK(again.already_there);
  }

  const DatasetEntry flat = set_of({{server.url() + "/loose.bin", 77, md5_of(loose), false},
                                    {server.url() + "/set.tar", size, md5_of(tar), false}},
                                   "", {"loose.bin", "set.tar"});
  put(folder / "loose.bin", loose);  // brought by the user
  CHECK(!fetch(flat, folder.path(), {}).already_there);
  CHECK(bytes_of(folder / "set.tar") == tar);
  CHECK(server.asked().size() == 2);
  fs::remove(folder / "set.tar");
  put(folder / "loose.bin", std::string("another"));
  check_refused([&] { fetch(flat, folder.path(), {}); }, "loose.bin", "remove it");
}

TEST_CASE("fetch: an archive that is the published one and would leave its folder is refused all the same") {
  if (!can_fetch()) return;
  HttpServer server;
  const TemporaryFolder folder;
  for (const std::string& member :
       {tar_member("../evil", "1"), tar_member("set/../../evil", "1"), tar_member(folder / "evil", "1"),
        tar_member("set/link", "", '2', folder.path())}) {
    const std::string tar = tar_member("set/data.bin", "1") + member + tar_end();
    server.put("set.tar", tar);
    const fs::path dir = folder / "data";
    put(folder / "sum", tar);
    const FileSums sums = sums_of_file(folder / "sum");
    const DatasetEntry set = set_of({{"http://unreachable.invalid/set.tar", static_cast<int64_t>(tar.size()),
                                      sums.md5, true, sums.sha256}},
                                    "set", {"data.bin"});
    check_refused([&] { fetch(set, dir, {.mirror = server.url()}); }, "set.tar");
    CHECK(!fs::exists(folder / "evil"));
    CHECK(!fs::exists(dir / "set"));
    fs::remove_all(dir);
  }
}

TEST_CASE("fetch: a file with the right MD5 sum and another SHA-256 sum is refused") {
  if (!can_fetch()) return;
  HttpServer server;
  const TemporaryFolder folder;
  const std::string bytes = letters(77);
  server.put("f", bytes);
  const DatasetEntry set =
      set_of({{"https://unreachable.invalid/f", 77, md5_of(bytes), false, std::string(64, '0')}}, "", {"f"});
  check_refused([&] { fetch(set, folder.path(), {.mirror = server.url()}); }, "SHA-256",
                "nothing of it was kept");
  CHECK(folder.entries() == 0);
  put(folder / "f", bytes);
  fs::create_directory(folder / "g");
  const DatasetEntry other = set_of(
      {{"https://unreachable.invalid/f", 77, md5_of(bytes), false, std::string(64, '0')}}, "", {"g/h"});
  check_refused([&] { fetch(other, folder.path(), {}); }, "SHA-256", "remove it");
}

TEST_CASE("download: a server that fails, sends too much, or speaks no TLS, and a full disk") {
  if (!can_fetch()) return;
  HttpServer server;
  const TemporaryFolder folder;
  const std::string bytes = letters(200000), sum = md5_of(bytes);
  server.put("f", bytes);
  server.answer_with("500 Internal Server Error");
  check_refused([&] { download(server.url() + "/f", folder / "f", 0, {sum}); },
                "/f: the server answers 500; --url names a mirror that has it");
  server.answer_with("");
  const std::string secure = "https" + server.url().substr(4);
  check_refused([&] { download(secure + "/f", folder / "f", 0, {sum}); }, secure, "cannot be reached");
  CHECK(folder.entries() == 0);
  {
    const FullDisk full(1000);
    check_refused([&] { download(server.url() + "/f", folder / "f", 0, {sum}); },
                  "f.part: cannot be written: File too large");
  }
  fs::remove(folder / "f.part");
  fs::create_directory(folder / "f");
  check_refused([&] { download(server.url() + "/f", folder / "f", 200000, {sum}); },
                "/f: cannot be put in place: Is a directory");
}

TEST_CASE("fetch: http is asked for under TLS first, a mirror may end with a slash, an archive may stay") {
  if (!can_fetch()) return;
  HttpServer server;
  const TemporaryFolder folder;
  const std::string tar = tar_member("set/data.bin", letters(5000)) + tar_end();
  const auto size = static_cast<int64_t>(tar.size());
  server.put("set.tar", tar);
  const auto set = [&](const std::string& url, const char* marker) {
    return set_of({{url + "/set.tar", size, md5_of(tar), true}}, "set", {marker});
  };
  std::vector<std::string> told;
  FetchOptions options{.mirror = server.url() + "/",
                       .keep_archive = true,
                       .on_progress = [&](const std::string& what, int64_t, int64_t) {
                         if (told.empty() || told.back() != what) told.push_back(what);
                       }};
  const fs::path kept = fetch(set("https://unreachable.invalid", "data.bin"), folder / "a", options).folder;
  CHECK(bytes_of(kept / "data.bin") == letters(5000));
  CHECK(fs::exists(folder / "a/set.tar"));
  CHECK(told.front() == "set.tar");
  CHECK(fetch(set(server.url(), "data.bin"), folder / "b", {}).folder == folder / "b/set");
  check_refused([&] { fetch(set(server.url(), "more.bin"), folder / "c", {}); },
                "test-set: ", "c/set lacks some of the set's files after the download");
  const std::string secure = "https" + server.url().substr(4);
  check_refused([&] { fetch(set(secure, "data.bin"), folder / "d", {}); }, secure, "cannot be reached");
  check_refused([&] { fetch(set(server.url(), "data.bin"), folder / "a/set.tar", {}); },
                "a/set.tar: cannot be made: ");
  check_refused([&] { fetch({.name = "own"}, folder.path(), {}); }, "own: is not published");
}

TEST_CASE("fetch: what needs an account says so") {
  const TemporaryFolder folder;
  check_refused([&] { fetch(find_dataset("imagenet"), folder / "x", {}); }, "imagenet", "account",
                "image-net.org");
  CHECK(folder.entries() == 0);
  if (!can_fetch()) return;
  check_refused([&] { fetch(find_dataset("mnist"), folder.path(), {.mirror = "ftp://x"}); }, "--url",
                "http://");
}

}  // namespace tessera
