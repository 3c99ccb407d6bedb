// The files of a run that grow while it trains: what cannot be written, and what is no longer as it was
// saved.

#include <cmath>

#include "apps/training/csv.h"
#include "apps/training/growing_file.h"
#include "apps/training/log_marks.h"
#include "apps/training/watch_file.h"
#include "engine/core/error.h"
#include "tests/error_of.h"
#include "tests/training/small_run.h"

namespace fs = std::filesystem;
using namespace tessera;

namespace {

std::string sentence_of(const fs::path& path) {
  return path.string() + ": is not what it was when the state was saved; what is drawn from it may be wrong";
}

}  // namespace

TEST_CASE("a growing file that cannot be made, written, cut or saved is named with the reason") {
  const TemporaryFolder folder;
  const std::string none = folder / "none/log", full = folder / "full";
  CHECK(error_of([&] { GrowingFile{none}; }) == none + ": cannot be opened: No such file or directory");
  fs::create_symlink("/dev/full", full);
  const GrowingFile file(full);
  CHECK(error_of([&] { file.add("line\n"); }) == full + ": cannot be written: No space left on device");
  CHECK(error_of([&] { file.add(""); }) == "");
  CHECK(error_of([&] { file.cut(0); }) == full + ": cannot be cut: Invalid argument");
  CHECK(error_of([&] { file.save(); }) == full + ": cannot be written: Invalid argument");
}

TEST_CASE("a mark is that of a beginning, and of no other") {
  const LogMark mark = LogMark::of("step\n1\n");
  CHECK(mark.bytes == 7);
  CHECK((mark.begins("step\n1\n") && mark.begins("step\n1\n2\n")));
  CHECK_FALSE(mark.begins("step\n2\n"));
  CHECK_FALSE(mark.begins("step\n"));
  CHECK(LogMark{3, ""}.begins("any"));
  CHECK_FALSE(LogMark{4, ""}.begins("any"));
}

TEST_CASE("tables are compared with what the state keeps of them, where it keeps something") {
  const TemporaryFolder folder;
  const auto changed = [&](const std::map<std::string, std::string>& metadata) {
    return changed_logs(folder.path(), metadata);
  };
  CHECK(changed({}).empty());
  CHECK(changed({{"metrics", ""}, {"steps", ""}}).empty());
  CHECK(changed({{"metrics", "epoch\n1\n"}}) == std::vector{sentence_of(folder / "metrics.csv")});
  put(folder / "metrics.csv", "epoch\n1\n2\n");
  put(folder / "steps.csv", "step\n9\n");
  put(folder / "watch.csv", "head\nrow\n");
  CHECK(changed({{"metrics", "epoch\n1\n"}, {"steps", "step\n"}}).empty());
  CHECK(changed({{"metrics", "epoch\n3\n"}, {"steps", "step\n1\n"}}) ==
        std::vector{sentence_of(folder / "metrics.csv"), sentence_of(folder / "steps.csv")});
  const LogMark mark = LogMark::of("head\n");
  const auto position = [](const Json& bytes, const Json& sum) {
    return Json{{"watch_bytes", bytes}, {"watch_sum", sum}}.dump();
  };
  CHECK(changed({{"position", position(mark.bytes, mark.sum)}}).empty());
  for (const std::string& wrong : {position(4, mark.sum), position(99, mark.sum), position(99, "")})
    CHECK(changed({{"position", wrong}}) == std::vector{sentence_of(folder / "watch.csv")});
  // A position that says nothing of the file, as those of versions before, or that is damaged.
  for (const std::string& silent : {std::string("{"), std::string("[1]"), std::string("{}"),
                                    position("5", mark.sum), position(-5, mark.sum), position(99, 5)})
    CHECK(changed({{"position", silent}}).empty());
}

TEST_CASE("a line of events contradicts its checksum only where it is whole and another") {
  const std::string line = with_crc({{"event", "epoch"}, {"name", "caf\xe9"}});
  CHECK(line.find("caf\xef\xbf\xbd") != std::string::npos);  // what is not UTF-8 is replaced
  CHECK_FALSE(contradicts_its_crc(line));
  CHECK_FALSE(contradicts_its_crc(line.substr(0, line.size() - 3)));  // as a kill leaves it
  CHECK_FALSE(contradicts_its_crc("{\"event\":\"epoch\"}"));
  CHECK(contradicts_its_crc("{\"event\":\"epoch\"" + line.substr(line.rfind(",\"crc32c"))));
  CHECK(contradicts_its_crc(line + "}"));
}

TEST_CASE("watch.csv keeps what its mark is of, and its whole lines where it is not as it was") {
  const TemporaryFolder folder;
  const fs::path path = folder / "watch.csv";
  LogMark mark;
  {
    WatchFile file(folder.path(), {});
    file.add(1, {{.layer = "blocks.0", .activation_rms = 2}, {.layer = "blocks.0.attn", .head = 3}});
    mark = file.save();
    file.add(2, {{.layer = "blocks.0"}});
  }
  const std::string all = bytes_of(path), saved = all.substr(0, static_cast<size_t>(mark.bytes));
  CHECK(mark.begins(all));
  CHECK(saved.starts_with(WatchFile::head() + "\n1,blocks.0,,2,"));
  CHECK(saved.find("\n1,blocks.0.attn,3,,") != std::string::npos);
  const auto reopened = [&](const std::string& text) {
    put(path, text);
    const Quiet quiet;
    { const WatchFile file(folder.path(), mark); }
    return bytes_of(path);
  };
  CHECK(reopened(all) == saved);
  std::string changed = all;
  changed[saved.size() - 2] ^= 1;
  CHECK(reopened(changed) == changed.substr(0, saved.size()));  // said on stderr, and gone on with
  const size_t first = all.find('\n') + 1;
  CHECK(reopened(all.substr(0, first + 5)) == all.substr(0, first));
  CHECK(reopened("step") == "");
}

TEST_CASE("fields of a table are quoted where they hold what separates them") {
  CHECK(csv_line({"a,b", "a\"b", "a\rb", "a\nb", "plain"}) == "\"a,b\",\"a\"\"b\",\"a\rb\",\"a\nb\",plain\n");
  CHECK(csv_line({"\tx", "\rx", "+1x", "@"}) == "'\tx,\"'\rx\",'+1x,'@\n");
  CHECK(csv_line({}) == "\n");
}
