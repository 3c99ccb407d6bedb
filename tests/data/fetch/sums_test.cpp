#include "data/fetch/sums.h"

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

TEST_CASE("sums: a file that is longer than one piece") {
  const TemporaryFolder folder;
  put(folder / "a", std::string(300000, 'a'));
  CHECK(sums_of_file(folder / "a").md5 == md5_text(std::string(300000, 'a')));
  check_refused([&] { sums_of_file(folder / "b"); }, "cannot be opened");
  put(folder / "c", "abc");  // FIPS 180-4
  CHECK(sums_of_file(folder / "c").sha256 ==
        "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

TEST_CASE("sums: another MD5 sum or SHA-256 sum is told, one that is not known is not asked for") {
  const FileSums found{"a", "b"};
  CHECK(difference(found, {"a", "b"}) == "");
  CHECK(difference(found, {"a"}) == "");
  CHECK(difference(found, {"c", "b"}) == "the MD5 sum a, the published file c");
  CHECK(difference(found, {"a", "c"}) == "the SHA-256 sum b, the published file c");
}

}  // namespace tessera
