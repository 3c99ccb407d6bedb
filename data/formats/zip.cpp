#include "data/formats/zip.h"

#include <zlib.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>

#include "engine/core/error.h"
#include "engine/core/printable.h"
#include "engine/io/file.h"

namespace tessera {

namespace {

constexpr uint32_t local_sign = 0x04034b50, central_sign = 0x02014b50, end_sign = 0x06054b50,
                   end64_sign = 0x06064b50, locator_sign = 0x07064b50;
constexpr size_t local_bytes = 30, central_bytes = 46, end_bytes = 22, end64_bytes = 56, locator_bytes = 20,
                 longest_comment = 65535;
constexpr uint32_t elsewhere = 0xffffffff;  // the number stands in ZIP64's fields
constexpr uint16_t zip64_field = 1, needs_zip64 = 45, encrypted = 1, method_stored = 0, method_deflated = 8;
constexpr uint16_t first_day = 0x21;  // 1980-01-01, the first that the format knows

// Little-endian numbers of an archive, by offset.
class Reader {
 public:
  Reader(std::string where, std::string_view bytes) : where_(std::move(where)), bytes_(bytes) {}

  uint64_t number(uint64_t at, size_t width) const {
    const std::string_view digits = part(at, width);
    uint64_t value = 0;
    for (size_t i = 0; i < width; ++i) value |= uint64_t{static_cast<uint8_t>(digits[i])} << 8 * i;
    return value;
  }
  uint16_t u16(uint64_t at) const { return static_cast<uint16_t>(number(at, 2)); }
  uint32_t u32(uint64_t at) const { return static_cast<uint32_t>(number(at, 4)); }
  uint64_t u64(uint64_t at) const { return number(at, 8); }
  std::string_view part(uint64_t at, uint64_t count) const {
    check(at <= bytes_.size() && count <= bytes_.size() - at, where_, ": ends at byte ", bytes_.size(),
          ", its directory wants ", count, " bytes at ", at, "; it is cut or damaged");
    return bytes_.substr(at, count);
  }
  void expect_sign(uint64_t at, uint32_t sign, const char* what) const {
    check(u32(at) == sign, where_, ": has no ", what, " at byte ", at, "; it is damaged");
  }
  uint64_t size() const { return bytes_.size(); }
  const std::string& where() const { return where_; }

 private:
  std::string where_;
  std::string_view bytes_;
};

struct Directory {
  uint64_t at = 0, files = 0;
};

Directory find_directory(const Reader& in) {
  check(in.size() >= end_bytes, in.where(), ": has ", in.size(), " bytes; a ZIP archive has at least ",
        end_bytes);
  const uint64_t last = in.size() - end_bytes, first = last - std::min<uint64_t>(last, longest_comment);
  for (uint64_t at = last + 1; at-- > first;) {
    if (in.u32(at) != end_sign || at + end_bytes + in.u16(at + 20) != in.size()) continue;
    if (at < locator_bytes || in.u32(at - locator_bytes) != locator_sign)
      return {in.u32(at + 16), in.u16(at + 10)};
    const uint64_t end64 = in.u64(at - locator_bytes + 8);
    in.expect_sign(end64, end64_sign, "ZIP64 end of its directory");
    return {in.u64(end64 + 48), in.u64(end64 + 32)};
  }
  fail(in.where(), ": has no directory at its end; it is cut, or no ZIP archive");
}

// The numbers of ZIP64's field, which take the places of those that are `elsewhere`, in their order.
void read_zip64(const Reader& in, uint64_t at, uint64_t count, std::array<uint64_t*, 3> numbers) {
  const uint64_t end = at + count;
  while (at + 4 <= end) {
    const uint64_t field = in.u16(at), bytes = in.u16(at + 2), field_end = at + 4 + bytes;
    check(field_end <= end, in.where(), ": has a damaged field of its directory at byte ", at);
    at += 4;
    for (uint64_t* number : numbers)
      if (field == zip64_field && *number == elsewhere && at + 8 <= field_end) {
        *number = in.u64(at);
        at += 8;
      }
    at = field_end;
  }
}

// The file at `at` of the directory; moves to the next.
ZipMember read_member(const Reader& in, uint64_t& at) {
  in.expect_sign(at, central_sign, "file of its directory");
  ZipMember member;
  const uint16_t flags = in.u16(at + 8), method = in.u16(at + 10);
  member.crc = in.u32(at + 16);
  uint64_t stored = in.u32(at + 20), size = in.u32(at + 24), local = in.u32(at + 42);
  const uint64_t name = in.u16(at + 28), extra = in.u16(at + 30), comment = in.u16(at + 32);
  member.name = in.part(at + central_bytes, name);
  read_zip64(in, at + central_bytes + name, extra, {&size, &stored, &local});
  const std::string where = in.where() + ": '" + printable(member.name, false) + "'";
  check((flags & encrypted) == 0, where, " is encrypted");
  check(method == method_stored || method == method_deflated, where, " is packed by method ", method,
        "; stored (0) and deflated (8) are read");
  in.expect_sign(local, local_sign, "file");
  const uint64_t data = local + local_bytes + in.u16(local + 26) + in.u16(local + 28);
  member.stored = in.part(data, stored);
  member.deflated = method == method_deflated;
  member.size = size;
  check(member.deflated || size == stored, where, " is stored in ", stored, " bytes and has ", size);
  at += central_bytes + name + extra + comment;
  return member;
}

uint32_t crc_of(uint32_t crc, std::string_view bytes) {
  return static_cast<uint32_t>(crc32_z(crc, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size()));
}

// Inflates piece by piece; take(piece) says whether to go on. Whether the stream came to its end.
template <class F> bool inflate_pieces(std::string_view from, F&& take) {
  z_stream z{};
  if (inflateInit2(&z, -MAX_WBITS) != Z_OK) return false;
  std::array<char, 1 << 16> piece{};
  int state = Z_OK;
  bool goes_on = true;
  while (state == Z_OK && goes_on) {
    const auto given = static_cast<uInt>(std::min<size_t>(from.size(), 1 << 30));
    z.next_in = const_cast<Bytef*>(reinterpret_cast<const Bytef*>(from.data()));
    z.avail_in = given;
    z.next_out = reinterpret_cast<Bytef*>(piece.data());
    z.avail_out = static_cast<uInt>(piece.size());
    state = inflate(&z, Z_NO_FLUSH);
    from.remove_prefix(given - z.avail_in);
    const size_t made = piece.size() - z.avail_out;
    if (made == 0 && given == 0) break;
    goes_on = take(std::string_view(piece.data(), made));
  }
  inflateEnd(&z);
  return state == Z_STREAM_END && from.empty();
}

void put(std::string& to, uint64_t number, size_t width) {
  for (; width > 0; --width, number >>= 8) to += static_cast<char>(number & 0xff);
}

// What a file's own header and its entry of the directory have in common, from the version on.
std::string common_fields(const ZipEntry& entry, uint32_t crc, size_t extra) {
  std::string bytes;
  for (const uint64_t number :
       {uint64_t{needs_zip64}, uint64_t{0}, uint64_t{method_stored}, uint64_t{0}, uint64_t{first_day}})
    put(bytes, number, 2);
  put(bytes, crc, 4);
  put(bytes, elsewhere, 4);
  put(bytes, elsewhere, 4);
  put(bytes, entry.name.size(), 2);
  put(bytes, extra, 2);
  return bytes;
}

}  // namespace

std::vector<ZipMember> read_zip(const std::string& where, std::string_view bytes) {
  const Reader in(where, bytes);
  const Directory directory = find_directory(in);
  check(directory.files <= bytes.size() / central_bytes, where, ": claims ", directory.files, " files in ",
        bytes.size(), " bytes");
  std::vector<ZipMember> members;
  uint64_t at = directory.at;
  for (uint64_t i = 0; i < directory.files; ++i) members.push_back(read_member(in, at));
  return members;
}

std::string_view content_of(const std::string& where, const ZipMember& member, std::string& held) {
  uint64_t size = member.stored.size();
  uint32_t crc = 0;
  if (!member.deflated) {
    crc = crc_of(0, member.stored);
  } else {
    size = 0;
    const bool whole = inflate_pieces(member.stored, [&](std::string_view piece) {
      crc = crc_of(crc, piece);
      size += piece.size();
      return size <= member.size;
    });
    check(size <= member.size && whole, where, ": its deflated bytes are damaged");
  }
  check(size == member.size && crc == member.crc, where, ": is damaged: ", size, " bytes of ", member.size,
        ", and the checksum is not the archive's; take a copy of it from elsewhere");
  if (!member.deflated) return member.stored;
  held.reserve(member.size);
  inflate_pieces(member.stored, [&](std::string_view piece) {
    held += piece;
    return true;
  });
  return held;
}

void write_zip(const std::filesystem::path& path, std::span<const ZipEntry> entries) {
  std::vector<std::string> headers;  // of the files, each before its content
  std::string directory;
  uint64_t at = 0;
  for (const ZipEntry& entry : entries) {
    const auto& [first, second] = entry.content;
    const uint64_t size = first.size() + second.size();
    const uint32_t crc = crc_of(crc_of(0, first), second);
    std::string header;
    put(header, local_sign, 4);
    header += common_fields(entry, crc, 20) + entry.name;
    for (const uint64_t number : {uint64_t{zip64_field}, uint64_t{16}}) put(header, number, 2);
    for (int i = 0; i < 2; ++i) put(header, size, 8);
    put(directory, central_sign, 4);
    put(directory, needs_zip64, 2);  // by this version
    directory += common_fields(entry, crc, 28);
    put(directory, 0, 10);  // no comment, first disk, no attributes
    put(directory, elsewhere, 4);
    directory += entry.name;
    for (const uint64_t number : {uint64_t{zip64_field}, uint64_t{24}}) put(directory, number, 2);
    for (const uint64_t number : {size, size, at}) put(directory, number, 8);
    at += header.size() + size;
    headers.push_back(std::move(header));
  }
  const uint64_t bytes = directory.size();
  put(directory, end64_sign, 4);
  put(directory, end64_bytes - 12, 8);
  for (int i = 0; i < 2; ++i) put(directory, needs_zip64, 2);
  put(directory, 0, 8);  // one disk
  for (const uint64_t number : {uint64_t{entries.size()}, uint64_t{entries.size()}, bytes, at})
    put(directory, number, 8);
  put(directory, locator_sign, 4);
  put(directory, 0, 4);
  put(directory, at + bytes, 8);
  put(directory, 1, 4);
  put(directory, end_sign, 4);
  put(directory, 0, 4);
  for (int i = 0; i < 2; ++i) put(directory, std::min<uint64_t>(entries.size(), 0xffff), 2);
  for (int i = 0; i < 2; ++i) put(directory, elsewhere, 4);
  put(directory, 0, 2);
  std::vector<std::string_view> pieces;
  for (size_t i = 0; i < entries.size(); ++i) {
    const auto& [first, second] = entries[i].content;
    pieces.insert(pieces.end(), {headers[i], first, second});
  }
  pieces.push_back(directory);
  write_file_atomically(path, pieces);
}

}  // namespace tessera
