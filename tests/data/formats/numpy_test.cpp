#include "data/formats/numpy.h"

#include <zlib.h>

#include "data/formats/zip.h"
#include "tests/data/files.h"

namespace tessera {

namespace {

std::string_view bytes_of_tensor(const Tensor& t) { return {static_cast<const char*>(t.raw()), t.bytes()}; }

// An .npy file with this header and data.
std::string npy(std::string header, const std::string& data) {
  header += '\n';
  return std::string("\x93NUMPY\x01\x00", 8) + static_cast<char>(header.size()) + std::string(1, '\0') +
         header + data;
}

std::string header(const std::string& type, const std::string& shape, const char* order = "False") {
  return "{'descr': '" + type + "', 'fortran_order': " + order + ", 'shape': (" + shape + "), }";
}

// A file of these bytes is refused with its name and this reason.
void refused(const std::string& bytes, const std::string& why = "") {
  static const TemporaryFolder folder;
  const auto path = folder / "x.npz";
  put(path, bytes);
  check_refused([&] { read_numpy(path); }, path.string(), why);
}

}  // namespace

TEST_CASE("numpy: an archive is read back as it was written, in every type") {
  const TemporaryFolder folder;
  const NamedTensors tensors{{"arr_0", Tensor::from(std::vector<double>{1, -2, 3.5, 4, 5, 6}, {2, 3})},
                             {"mu", Tensor::from(std::vector<double>{0.1, 1e300}, {2}, DType::f64)},
                             {"labels", Tensor::from(std::vector<int64_t>{-1, 1LL << 40, 3}, {3})},
                             {"pixels", Tensor::full({2, 2, 2, 3}, 200, DType::u8)},
                             {"scalar", Tensor::full({}, 7)},
                             {"none", Tensor::zeros({0, 4})}};
  std::vector<NumpyArray> arrays;
  for (const auto& [name, t] : tensors) arrays.push_back({name, t.dtype(), t.shape(), bytes_of_tensor(t)});
  write_npz(folder / "x.npz", arrays);
  const NamedTensors read = read_numpy(folder / "x.npz");
  REQUIRE(read.size() == tensors.size());
  for (size_t i = 0; i < read.size(); ++i) {
    CAPTURE(tensors[i].first);
    CHECK(read[i].first == tensors[i].first);
    CHECK((read[i].second.dtype() == tensors[i].second.dtype() &&
           read[i].second.shape() == tensors[i].second.shape()));
    CHECK(bytes_of_tensor(read[i].second) == bytes_of_tensor(tensors[i].second));
  }
  write_npz(folder / "y.npz", arrays);
  CHECK(bytes_of(folder / "x.npz") == bytes_of(folder / "y.npz"));
  arrays[0].shape = {7};
  check_refused([&] { write_npz(folder / "z.npz", arrays); }, "z.npz", "24 bytes for 'arr_0'");
  arrays[0] = {"half", DType::bf16, {1}, "12"};
  check_refused([&] { write_npz(folder / "z.npz", arrays); }, "z.npz", "2 bytes for 'half' of bf16 [1]");
}

TEST_CASE("numpy: small types widen, an .npy file is arr_0, a header's spaces do not matter") {
  const TemporaryFolder folder;
  const auto read = [&](const std::string& bytes) {
    put(folder / "x.npy", bytes);
    const NamedTensors arrays = read_numpy(folder / "x.npy");
    CHECK((arrays.size() == 1 && arrays[0].first == "arr_0"));
    return arrays[0].second.values();
  };
  CHECK(read(npy(header("<f2", "2,"), std::string("\x00\x3c\x00\xc0", 4))) == std::vector<double>{1, -2});
  CHECK(read(npy(header("<i4", "1,"), "\xff\xff\xff\xff")) == std::vector<double>{-1});
  CHECK(read(npy(header("|b1", "2,", "True"), std::string("\x01\x00", 2))) == std::vector<double>{1, 0});
  const std::string second = header("|u1", "2,");  // of the format, whose length has four bytes
  CHECK(read(std::string("\x93NUMPY\x02\x00", 8) + static_cast<char>(second.size()) + std::string(3, '\0') +
             second + "\x05\x06") == std::vector<double>{5, 6});
  CHECK(read(npy("{'descr':  '|u1',  'fortran_order': False, 'shape': (1, 2) }  ", "\x05\x06")) ==
        std::vector<double>{5, 6});
}

TEST_CASE("numpy: every cut of an archive and every changed byte is refused or changes no value") {
  const TemporaryFolder folder;
  const Tensor t = Tensor::from(std::vector<double>{1, 2, 3}, {3});
  const NumpyArray array{"arr_0", t.dtype(), t.shape(), bytes_of_tensor(t)};
  write_npz(folder / "x.npz", {&array, 1});
  const std::string whole = bytes_of(folder / "x.npz");
  for (size_t cut = 0; cut < whole.size(); ++cut) {
    CAPTURE(cut);
    refused(whole.substr(0, cut));
  }
  for (size_t at = 0; at < whole.size(); ++at) {
    CAPTURE(at);
    std::string damaged = whole;
    damaged[at] = static_cast<char>(damaged[at] ^ 0x15);
    put(folder / "y.npz", damaged);
    try {
      for (const auto& [name, tensor] : read_numpy(folder / "y.npz")) CHECK(tensor.values() == t.values());
    } catch (const Error& error) {
      CHECK(std::string(error.what()).find("y.npz") != std::string::npos);
    }
  }
}

TEST_CASE("numpy: what is no array, or claims what is not there, is refused") {
  refused("", "is no .npy file");
  refused(npy(header("<f4", "2,"), "1234"), "has 4 bytes, <f4 [2] takes 8");
  refused(npy(header(">f4", "1,"), "1234"), "has the type '>f4'; those known are <f4");
  refused(npy(header("|O", "1,"), "1234"), "'|O'");
  refused(npy(header("<f4", "1, 1", "True"), "1234"), "ascontiguousarray");
  refused(npy(header("<f4", "9999999999, 9999999999"), "1234"), "more than any memory");
  refused(npy(header("<f4", "99999999999999999999,"), "1234"), "has the shape");
  refused(npy("{'descr': evil}", "1234"), "has the header");
  refused(std::string("\x93NUMPY\x01\x00\xff\xff{", 11) + "}", "announces a header of 65535 bytes");
  refused(std::string("\x93NUMPY\x09\x00\x01\x00{}", 12), "has version 9");
  refused(std::string("\x93NUMPY\x01", 7), "is no .npy file");
  refused(std::string("\x93NUMPY\x00\x00\x01\x00{}", 12), "has version 0");
  refused(std::string("\x93NUMPY\x01\x00\x03\x00{}", 12), "announces a header of 3 bytes, has 2");
  refused(npy(header("<f4", "1,") + std::string(5000, ' '), "1234").replace(8, 2, "\x88\x13"),
          "announces a header of 5000 bytes");
  refused(npy(header("<f4", " 1,"), "1234"), "has the shape ( 1,)");
  refused(npy(header("<f4", "1, 1, 1, 1, 1, 1, 1, 1, 1"), "1234"), "has 9 axes, at most 8 are supported");
  refused("PK\x03\x04" + std::string(40, 'x'), "no directory at its end");
}

}  // namespace tessera
