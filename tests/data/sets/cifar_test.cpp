#include "data/sets/cifar.h"

#include "data/registry.h"
#include "tests/data/files.h"
#include "tests/io/without_rights.h"

namespace tessera {

namespace {

CifarFormat small(CifarFormat format) {
  format.train_records = 4;
  format.test_records = 3;
  return format;
}

// Records with random pixels and labels that fit the format, as the archives hold them.
std::vector<uint8_t> records(const CifarFormat& format, int64_t count, uint64_t seed) {
  std::vector<uint8_t> bytes;
  for (int64_t i = 0; i < count; ++i) {
    if (format.label_bytes == 2) bytes.push_back(static_cast<uint8_t>(i % 20));
    bytes.push_back(static_cast<uint8_t>(i % 10));
    const auto pixels = random_bytes(3072, seed + static_cast<uint64_t>(i));
    bytes.insert(bytes.end(), pixels.begin(), pixels.end());
  }
  return bytes;
}

void put_all(const std::filesystem::path& root, const CifarFormat& format) {
  uint64_t seed = 0;
  for (const std::string& file : format.train_files) put(root / file, records(format, 4, seed += 10));
  put(root / format.test_file, records(format, 3, 1000));
  std::string names;
  for (int64_t k = 0; k < format.classes; ++k) names += "class" + std::to_string(k) + "\n";
  put(root / format.names_file, names + "\n");
}

}  // namespace

TEST_CASE("cifar10: five files in their order, planes interleaved") {
  const TemporaryFolder folder;
  const CifarFormat format = small(cifar10_format());
  put_all(folder / format.folder, format);
  for (const auto& dir : {folder.path(), folder / format.folder}) {
    const Dataset dataset = open_cifar(dir, format);
    CHECK(dataset.train->size() == 20);
    CHECK(dataset.validation->size() == 3);
    CHECK(dataset.class_names.size() == 10);
    CHECK(dataset.class_names[9] == "class9");
    CHECK(dataset.image_shape == Shape{3, 32, 32});
    CHECK(dataset.train->label(6) == 2);
    const auto planes = random_bytes(3072, 22);  // record 2 of the second file, whose seed is 20
    const Image image = picture(*dataset.train, 6);
    for (const int p : {0, 1, 33, 1023})
      for (const int c : {0, 1, 2})
        CHECK(image.pixels[static_cast<size_t>(3 * p + c)] == planes[static_cast<size_t>(1024 * c + p)]);
  }
}

TEST_CASE("cifar100: fine or coarse labels") {
  const TemporaryFolder folder;
  for (const bool coarse : {false, true}) {
    CifarFormat format = small(cifar100_format(coarse));
    format.train_records = 4;
    put_all(folder.path(), format);
    auto bytes = records(format, 4, 10);
    bytes[0] = 19;
    bytes[1] = 99;
    put(folder / "train.bin", bytes);
    const Dataset dataset = open_cifar(folder.path(), format);
    CHECK(dataset.train->label(0) == (coarse ? 19 : 99));
    CHECK(dataset.classes() == (coarse ? 20 : 100));
  }
}

TEST_CASE("cifar: what is wrong is named") {
  const TemporaryFolder folder;
  const CifarFormat format = small(cifar10_format());
  const auto open = [&] { open_cifar(folder.path(), format); };
  check_refused([&] { open_cifar(folder / "none", format); }, "none", "not a folder",
                "cifar-10-binary.tar.gz");
  check_refused(open, "data_batch_1.bin", "binary version");
  put_all(folder.path(), format);
  CHECK_NOTHROW(open());

  std::filesystem::remove(folder / "data_batch_3.bin");
  check_refused(open, "data_batch_3.bin", "missing");
  auto bytes = records(format, 4, 1);
  bytes.pop_back();
  put(folder / "data_batch_3.bin", bytes);
  check_refused(open, "data_batch_3.bin", "12291 bytes", "4 records of 3073 bytes are 12292", "cut short");
  put(folder / "data_batch_3.bin", records(format, 5, 1));
  check_refused(open, "data_batch_3.bin", "15365 bytes");
  bytes = records(format, 4, 1);
  bytes[2 * 3073] = 10;
  put(folder / "data_batch_3.bin", bytes);
  check_refused(open, "data_batch_3.bin, record 2", "label 10", "10 classes");
  put(folder / "data_batch_3.bin", records(format, 4, 1));
  put(folder / "batches.meta.txt", std::string("cat\ndog\n"));
  check_refused(open, "batches.meta.txt", "names 2 classes");
  std::filesystem::remove(folder / "batches.meta.txt");
  check_refused(open, "batches.meta.txt", "No such file");
}

TEST_CASE("cifar: the published sets, and files that may not be read") {
  const TemporaryFolder folder;
  check_refused([&] { open_dataset("cifar10", folder.path()); },
                "data_batch_1.bin; give the folder that cifar-10");
  for (const bool coarse : {false, true})
    check_refused([&] { open_dataset("cifar100", folder.path(), {.coarse_labels = coarse}); },
                  "train.bin; give the folder that cifar-100");
  const CifarFormat format = small(cifar10_format());
  put_all(folder.path(), format);
  std::filesystem::permissions(folder.path(), std::filesystem::perms(0755));
  std::filesystem::permissions(folder / "data_batch_2.bin", std::filesystem::perms(0));
  const WithoutRights someone;
  check_refused([&] { open_cifar(folder.path(), format); }, "data_batch_2.bin: cannot be opened");
}

}  // namespace tessera
