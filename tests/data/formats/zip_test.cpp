#include "data/formats/zip.h"

#include <zlib.h>

#include "data/formats/numpy.h"
#include "tests/data/files.h"

namespace tessera {

namespace {

std::string number(uint64_t value, size_t width) {
  std::string bytes;
  for (; width > 0; --width, value >>= 8) bytes += static_cast<char>(value & 0xff);
  return bytes;
}

std::string deflated(const std::string& plain) {
  z_stream z{};
  REQUIRE(deflateInit2(&z, Z_BEST_SPEED, Z_DEFLATED, -MAX_WBITS, 8, Z_DEFAULT_STRATEGY) == Z_OK);
  std::string bytes(deflateBound(&z, static_cast<uLong>(plain.size())), '\0');
  z.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(plain.data()));
  z.avail_in = static_cast<uInt>(plain.size());
  z.next_out = reinterpret_cast<Bytef*>(bytes.data());
  z.avail_out = static_cast<uInt>(bytes.size());
  REQUIRE(deflate(&z, Z_FINISH) == Z_STREAM_END);
  bytes.resize(z.total_out);
  deflateEnd(&z);
  return bytes;
}

// One file of an archive, each part of which can be made wrong.
struct Member {
  std::string name, content;
  bool packed = false;
  uint32_t method = packed ? 8 : 0, flags = 0;
  std::string stored = packed ? deflated(content) : content;
  uint32_t crc =
      static_cast<uint32_t>(crc32_z(0, reinterpret_cast<const Bytef*>(content.data()), content.size()));
  uint64_t size = content.size(), stored_size = stored.size(), local = 0;
  std::string extra = "";
};

// An archive as programs without ZIP64 write it; `end64` stands before the last record.
std::string archive(std::vector<Member> members, const std::string& comment = "") {
  std::string files, directory;
  for (Member& m : members) {
    m.local += files.size();
    const std::string sizes = number(m.crc, 4) + number(m.stored_size, 4) + number(m.size, 4);
    files += number(0x04034b50, 4) + number(20, 2) + number(m.flags, 2) + number(m.method, 2) + number(0, 4) +
             sizes + number(m.name.size(), 2) + number(0, 2) + m.name + m.stored;
    directory += number(0x02014b50, 4) + number(20, 2) + number(20, 2) + number(m.flags, 2) +
                 number(m.method, 2) + number(0, 4) + sizes + number(m.name.size(), 2) +
                 number(m.extra.size(), 2) + number(0, 10) + number(m.local, 4) + m.name + m.extra;
  }
  return files + directory + number(0x06054b50, 4) + number(0, 4) + number(members.size(), 2) +
         number(members.size(), 2) + number(directory.size(), 4) + number(files.size(), 4) +
         number(comment.size(), 2) + comment;
}

std::string content(const std::string& bytes) {
  std::string all, held;
  for (const ZipMember& member : read_zip("x.zip", bytes))
    all += member.name + "=" + std::string(content_of("x.zip: '" + member.name + "'", member, held)) + ";";
  return all;
}

void refused(const std::string& bytes, const std::string& why) {
  check_refused([&] { content(bytes); }, "x.zip: ", why);
}

}  // namespace

TEST_CASE("zip: stored and deflated files, with a comment, and with fields that are not read") {
  const std::string longer(200000, 'l');
  CHECK(content(archive({{"a", "one"}, {"b", longer, true}}, "made by a test")) == "a=one;b=" + longer + ";");
  Member with_extra{"a", "one"};
  with_extra.extra = number(0x5455, 2) + number(5, 2) + "times";    // another program's field
  with_extra.extra += number(1, 2) + number(8, 2) + number(77, 8);  // of which no number has need
  CHECK(content(archive({with_extra})) == "a=one;");
  CHECK(content(archive({})).empty());
}

TEST_CASE("zip: numbers that stand in ZIP64's field") {
  Member large{"a", "one"};
  large.size = large.stored_size = 0xffffffff;
  large.extra = number(1, 2) + number(16, 2) + number(3, 8) + number(3, 8);
  CHECK(content(archive({large})) == "a=one;");
  large.extra = number(1, 2) + number(8, 2) + number(3, 8);  // of the size alone
  refused(archive({large}), "its directory wants 4294967295 bytes");
  large.extra = number(1, 2) + number(17, 2) + number(3, 8) + number(3, 8);
  refused(archive({large}), "has a damaged field of its directory at byte ");
}

TEST_CASE("zip: what an archive claims is not believed") {
  refused("PK", "has 2 bytes; a ZIP archive has at least 22");
  refused(std::string(70000, 'x'), "has no directory at its end; it is cut, or no ZIP archive");
  std::string whole = archive({{"a", "one"}});
  std::string changed = whole;
  changed.replace(whole.size() - 12, 2, number(9, 2));
  refused(changed, "claims 9 files in ");
  changed = whole;
  changed.replace(whole.size() - 6, 4, number(1, 4));
  refused(changed, "has no file of its directory at byte 1; it is damaged");
  changed.replace(whole.size() - 6, 4, number(100000, 4));
  refused(changed, "its directory wants 4 bytes at 100000; it is cut or damaged");
  changed = whole;
  changed[0] = 'X';
  refused(changed, "has no file at byte 0; it is damaged");
  Member other{"a\n", "one"};
  other.flags = 1;
  refused(archive({other}), "'a\\x0a' is encrypted");
  other.flags = 0;
  other.method = 12;
  refused(archive({other}), "is packed by method 12; stored (0) and deflated (8) are read");
  other.method = 0;
  other.size = 4;
  refused(archive({other}), "is stored in 3 bytes and has 4");
  // A locator of ZIP64's directory that leads to something else.
  const std::string end = whole.substr(whole.size() - 22);
  changed = whole.substr(0, whole.size() - 22) + number(0x07064b50, 4) + number(0, 4) + number(3, 8) +
            number(1, 4) + end;
  refused(changed, "has no ZIP64 end of its directory at byte 3");
}

TEST_CASE("zip: deflated bytes that are damaged, or of another size or checksum than said") {
  const std::string text(1000, 't');
  const auto with = [&](auto&& change) {
    Member member{"a", text, true};
    change(member);
    return archive({member});
  };
  CHECK(content(with([](Member&) {})) == "a=" + text + ";");
  refused(with([](Member& m) { m.stored[0] = 7; }), "its deflated bytes are damaged");
  refused(with([](Member& m) { m.stored.resize(--m.stored_size); }), "its deflated bytes are damaged");
  refused(with([](Member& m) { m.stored += "x", ++m.stored_size; }), "its deflated bytes are damaged");
  refused(with([](Member& m) { m.size = 999; }), "its deflated bytes are damaged");
  refused(with([](Member& m) { m.size = 1001; }), "is damaged: 1000 bytes of 1001, and the checksum");
  refused(with([](Member& m) { ++m.crc; }), "is damaged: 1000 bytes of 1000, and the checksum");
  refused(with([](Member& m) { m.stored.clear(), m.stored_size = 0; }), "its deflated bytes are damaged");
  Member stored{"a", "one"};
  ++stored.crc;
  refused(archive({stored}), "is damaged: 3 bytes of 3, and the checksum is not the archive's");
}

TEST_CASE("zip: an archive of arrays by other programs, and one that has a name twice") {
  const TemporaryFolder folder;
  const std::string header = "{'descr': '|u1', 'fortran_order': False, 'shape': (2,), }\n";
  const std::string npy =
      std::string("\x93NUMPY\x01\x00", 8) + number(header.size(), 2) + header + "\x05\x06";
  put(folder / "x.npz", archive({{"a.npy", npy, true}, {"b", npy}}));
  const NamedTensors read = read_numpy(folder / "x.npz");
  REQUIRE(read.size() == 2);
  CHECK((read[0].first == "a" && read[1].first == "b"));
  CHECK(read[0].second.values() == std::vector<double>{5, 6});
  put(folder / "x.npz", archive({{"a.npy", npy}, {"a", npy}}));
  check_refused([&] { read_numpy(folder / "x.npz"); }, "x.npz: 'a' is there twice");
}

}  // namespace tessera
