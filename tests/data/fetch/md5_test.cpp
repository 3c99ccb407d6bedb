#include "data/fetch/md5.h"

#include "tests/data/files.h"

namespace tessera {

namespace {

std::string md5_text(const std::string& text) {
  return hex(md5({{reinterpret_cast<const uint8_t*>(text.data()), text.size()}}));
}

}  // namespace

TEST_CASE("md5: the sums of RFC 1321") {
  CHECK(md5_text("") == "d41d8cd98f00b204e9800998ecf8427e");
  CHECK(md5_text("a") == "0cc175b9c0f1b6a831c399e269772661");
  CHECK(md5_text("message digest") == "f96b697d7cb7938d525a2f31aaf161d0");
  CHECK(md5_text("12345678901234567890123456789012345678901234567890123456789012345678901234567890") ==
        "57edf4a22be3c955ac49da2e2107b67a");
}

TEST_CASE("md5: the sum of two parts is that of the whole") {
  const std::vector<uint8_t> bytes = random_bytes(200, 1);
  for (const size_t cut : {0, 1, 63, 64, 65, 200})
    CHECK(md5({std::span(bytes).first(cut), std::span(bytes).subspan(cut)}) == md5({bytes}));
}

TEST_CASE("md5: a file that is longer than one piece") {
  const TemporaryFolder folder;
  put(folder / "a", std::string(300000, 'a'));
  CHECK(md5_of_file(folder / "a") == md5_text(std::string(300000, 'a')));
  check_refused([&] { md5_of_file(folder / "b"); }, "cannot be opened");
}

}  // namespace tessera
