#include "data/sets/cifar.h"

#include <fstream>

#include "data/formats/folder.h"
#include "engine/core/error.h"

namespace tessera {

namespace fs = std::filesystem;

namespace {

constexpr int side = 32;
constexpr int64_t area = int64_t{side} * side;

struct Records {
  std::vector<uint8_t> pixels;  // [records, 32, 32, 3]
  std::vector<int32_t> labels;
};

void append_interleaved(const uint8_t* planes, std::vector<uint8_t>& pixels) {
  for (int64_t p = 0; p < area; ++p)
    for (int64_t c = 0; c < 3; ++c) pixels.push_back(planes[c * area + p]);
}

// Checks the length of the file before anything is read.
void check_size(const fs::path& path, const CifarFormat& format, int64_t records) {
  const int64_t record_bytes = format.label_bytes + 3 * area;
  check(is_file(path), format.dataset, ": ", path.string(), " is missing; ", format.archive, " has it");
  const auto bytes = static_cast<int64_t>(fs::file_size(path));
  check(bytes == records * record_bytes, format.dataset, ": ", path.string(), " has ", bytes, " bytes, ",
        records, " records of ", record_bytes, " bytes are ", records * record_bytes,
        "; it is cut short or not from ", format.archive);
}

void append_file(const fs::path& path, const CifarFormat& format, int64_t records, Records& to) {
  std::ifstream in(path, std::ios::binary);
  check(in.is_open(), path.string(), ": cannot be opened");
  std::vector<uint8_t> record(static_cast<size_t>(format.label_bytes + 3 * area));
  for (int64_t i = 0; i < records; ++i) {
    in.read(reinterpret_cast<char*>(record.data()), std::ssize(record));
    check(in.gcount() == std::ssize(record), path.string(), ": at byte ", i * std::ssize(record),
          ": cannot be read");
    const int label = record[static_cast<size_t>(format.label_at)];
    check(label < format.classes, format.dataset, ": ", path.string(), ", record ", i, " at byte ",
          i * std::ssize(record), ": label ", label, ", there are ", format.classes, " classes");
    to.labels.push_back(label);
    append_interleaved(record.data() + format.label_bytes, to.pixels);
  }
}

std::shared_ptr<const Split> read_split(const fs::path& root, const std::vector<std::string>& files,
                                        const CifarFormat& format, int64_t records_per_file,
                                        const char* split) {
  for (const std::string& file : files) check_size(root / file, format, records_per_file);
  Records records;
  records.pixels.reserve(files.size() * static_cast<size_t>(records_per_file * 3 * area));
  for (const std::string& file : files) append_file(root / file, format, records_per_file, records);
  return std::make_shared<StoredSplit>(side, side, 3, std::move(records.pixels), std::move(records.labels),
                                       root.string() + ", " + split + " split");
}

std::vector<std::string> read_names(const fs::path& path, const CifarFormat& format) {
  std::vector<std::string> names = read_lines(path);
  check(static_cast<int64_t>(names.size()) == format.classes, format.dataset, ": ", path.string(), " names ",
        names.size(), " classes, there are ", format.classes);
  return names;
}

}  // namespace

CifarFormat cifar10_format() {
  return {.dataset = "cifar10",
          .folder = "cifar-10-batches-bin",
          .archive = "cifar-10-binary.tar.gz",
          .train_files = {"data_batch_1.bin", "data_batch_2.bin", "data_batch_3.bin", "data_batch_4.bin",
                          "data_batch_5.bin"},
          .test_file = "test_batch.bin",
          .names_file = "batches.meta.txt",
          .train_records = 10000,
          .test_records = 10000,
          .label_bytes = 1,
          .label_at = 0,
          .classes = 10,
          .normalisation = {{0.4914f, 0.4822f, 0.4465f}, {0.2470f, 0.2435f, 0.2616f}}};
}

CifarFormat cifar100_format(bool coarse_labels) {
  return {.dataset = "cifar100",
          .folder = "cifar-100-binary",
          .archive = "cifar-100-binary.tar.gz",
          .train_files = {"train.bin"},
          .test_file = "test.bin",
          .names_file = coarse_labels ? "coarse_label_names.txt" : "fine_label_names.txt",
          .train_records = 50000,
          .test_records = 10000,
          .label_bytes = 2,
          .label_at = coarse_labels ? 0 : 1,
          .classes = coarse_labels ? 20 : 100,
          .normalisation = {{0.5070f, 0.4865f, 0.4409f}, {0.2673f, 0.2564f, 0.2762f}}};
}

Dataset open_cifar(const fs::path& dir, const CifarFormat& format) {
  const fs::path root = find_root(format.dataset, dir, format.folder, format.train_files.front(),
                                  "give the folder that " + format.archive + " (the binary version) unpacks");
  Dataset dataset;
  dataset.name = format.dataset;
  dataset.class_names = read_names(root / format.names_file, format);
  dataset.image_shape = {3, side, side};
  dataset.normalisation = format.normalisation;
  dataset.train = read_split(root, format.train_files, format, format.train_records, "train");
  dataset.validation = read_split(root, {format.test_file}, format, format.test_records, "test");
  return dataset;
}

DatasetEntry cifar10_entry() {
  const PublishedSet published{
      .files = {{"https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz", 170052171,
                 "c32a1d4ab5d03f1284b67883e8d87530", true,
                 "c4a38c50a1bc5f3a1c5537f2155ab9d68f9f25eb1ed8d9ddda3db29a59bca1dd"}},
      .folder = "cifar-10-batches-bin",
      .markers = {"data_batch_1.bin", "data_batch_2.bin", "data_batch_3.bin", "data_batch_4.bin",
                  "data_batch_5.bin", "test_batch.bin", "batches.meta.txt"},
      .train = 50000,
      .validation = 10000,
      .classes = 10,
      .side = side,
      .sums = {{"data_batch_1.bin", "5dd7e06a14cb22eb9f671a540d1b7c25"},
               {"data_batch_2.bin", "5ea93a67294ea407fff1d09f752e9692"},
               {"data_batch_3.bin", "942cd6a4bcdd0dd3c604fbe906cb4421"},
               {"data_batch_4.bin", "ae636b3ba5c66a11e91e8cb52e771fcb"},
               {"data_batch_5.bin", "53f37980c15c3d472c316c40844f3f0d"},
               {"test_batch.bin", "803d5f7f4d78ea53de84dbe85f74fb6d"}}};
  return {
      .name = "cifar10",
      .open = [](const fs::path& dir, const DatasetOptions&) { return open_cifar(dir, cifar10_format()); },
      .sizes = {.only = {side}, .reason = "the images are 32 x 32 as stored"},
      .published = published};
}

DatasetEntry cifar100_entry() {
  const PublishedSet published{
      .files = {{"https://www.cs.toronto.edu/~kriz/cifar-100-binary.tar.gz", 168513733,
                 "03b5dce01913d631647c71ecec9e9cb8", true,
                 "58a81ae192c23a4be8b1804d68e518ed807d710a4eb253b1f2a199162a40d8ec"}},
      .folder = "cifar-100-binary",
      .markers = {"train.bin", "test.bin", "fine_label_names.txt", "coarse_label_names.txt"},
      .train = 50000,
      .validation = 10000,
      .classes = 100,
      .side = side,
      .sums = {{"train.bin", "6172c7755cfe09b2fe270c85cebc1b15"},
               {"test.bin", "4499cfba6c016c1be1438163640a0898"}}};
  return {.name = "cifar100",
          .open =
              [](const fs::path& dir, const DatasetOptions& options) {
                return open_cifar(dir, cifar100_format(options.coarse_labels));
              },
          .sizes = {.only = {side}, .reason = "the images are 32 x 32 as stored"},
          .coarse_classes = 20,
          .published = published};
}

}  // namespace tessera
