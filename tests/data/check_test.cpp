#include "data/check.h"

#include "data/file_look.h"
#include "data/registry.h"
#include "tests/data/files.h"

namespace tessera {

namespace {

namespace fs = std::filesystem;

// Writes train and val with two classes of three different images each.
void put_folder(const fs::path& root) {
  uint64_t seed = 0;
  for (const char* split : {"train", "val"})
    for (const char* name : {"cats", "dogs"})
      for (const char* file : {"a.png", "b.png", "c.png"})
        put_png(root / split / name / file, random_image(8, 8, ++seed));
}

const Finding* find(const DatasetCheck& check, const std::string& kind) {
  for (const Finding& finding : check.findings)
    if (finding.kind == kind) return &finding;
  return nullptr;
}

DatasetCheck checked(const fs::path& root, const DatasetEntry* entry = nullptr) {
  return check_dataset(open_dataset("folder", root), entry);
}

}  // namespace

TEST_CASE("check: nothing wrong") {
  const TemporaryFolder folder;
  put_folder(folder.path());
  const DatasetCheck check = checked(folder.path());
  CHECK(check.passed());
  CHECK(check.findings.empty());
  CHECK(check.images == std::array<int64_t, 2>{6, 6});
  CHECK(check.histogram[1] == std::vector<int64_t>{3, 3});
  CHECK(check.sizes == std::array<int, 4>{8, 8, 8, 8});
}

TEST_CASE("check: unreadable pictures, and a share that grows to 1") {
  const TemporaryFolder folder;
  put_folder(folder.path());
  put(folder / "val" / fs::path("dogs") / "b.png", std::vector<uint8_t>{1, 2, 3});
  double share = 0;
  const DatasetCheck check =
      check_dataset(open_dataset("folder", folder.path()), nullptr, [&](double at) { share = at; });
  CHECK(share == 1);
  CHECK_FALSE(check.passed());
  REQUIRE(find(check, "unreadable"));
  CHECK(find(check, "unreadable")->count == 1);
  CHECK(find(check, "unreadable")->examples.at(0).find("b.png") != std::string::npos);
}

TEST_CASE("check: damaged files are named before a run, all of them") {
  const TemporaryFolder folder;
  put_folder(folder.path());
  const auto opened = [&] { return open_dataset("folder", folder.path()); };
  FileLook look = check_files(opened(), 60);
  CHECK(look.files == 12);
  CHECK(look.looked_at == 12);
  CHECK(look.damaged.empty());
  CHECK(expect_intact_files(opened(), 60).empty());
  CHECK(expect_intact_files(opened(), 0).find("0 of 12 picture files") == 0);
  CHECK(check_files(open_dataset("shapes", ""), 60).files == 0);

  // The very first picture, which the image size is taken from, is one of them.
  put(folder / "train" / fs::path("cats") / "a.png", std::vector<uint8_t>{});
  put(folder / "val" / fs::path("dogs") / "b.png", std::vector<uint8_t>{1, 2, 3});
  look = check_files(opened(), 60);
  REQUIRE(look.damaged.size() == 2);
  CHECK(look.damaged[0].find("a.png") != std::string::npos);
  check_refused([&] { expect_intact_files(opened(), 60); }, "2 of 12 picture files cannot be read", "a.png",
                "b.png");
}

TEST_CASE("check: copies within a split are noted, copies in both are wrong") {
  const TemporaryFolder folder;
  put_folder(folder.path());
  fs::copy_file(folder / "train" / fs::path("cats") / "a.png", folder / "train" / fs::path("dogs") / "z.png");
  DatasetCheck check = checked(folder.path());
  CHECK(check.passed());
  REQUIRE(find(check, "duplicates"));
  CHECK(find(check, "duplicates")->count == 1);
  CHECK(find(check, "duplicates")->same_files == 1);
  REQUIRE(find(check, "contradicting labels"));
  CHECK(find(check, "contradicting labels")->count == 1);

  // the same pixels in another format
  Image image = random_image(8, 8, 1);
  const auto row = [](int y, const Image& of) { return std::string(of.at(y, 0), of.at(y, 0) + 24); };
  std::string bmp("BM\xF6\0\0\0\0\0\0\0\x36\0\0\0\x28\0\0\0\x08\0\0\0\x08\0\0\0\x01\0\x18\0", 30);
  bmp.resize(54, '\0');
  for (int y = 7; y >= 0; --y)
    for (size_t x = 0; x < 8; ++x) {
      const std::string bytes = row(y, image).substr(3 * x, 3);
      bmp += {bytes[2], bytes[1], bytes[0]};
    }
  put(folder / "val" / fs::path("cats") / "leak.bmp", bmp);
  check = checked(folder.path());
  CHECK_FALSE(check.passed());
  REQUIRE(find(check, "leakage"));
  CHECK(find(check, "leakage")->count == 1);
  CHECK(find(check, "leakage")->same_files == 0);
  CHECK(find(check, "leakage")->examples.at(0).find("leak.bmp") != std::string::npos);
  const DatasetEntry leaky{.name = "leaky", .published = PublishedSet{.leaks = 1}};
  CHECK(checked(folder.path(), &leaky).passed());
}

TEST_CASE("check: counts, sizes and sums against what was published") {
  const TemporaryFolder folder;
  put_folder(folder.path());
  put_png(folder / "train" / fs::path("cats") / "large.png", random_image(9, 8, 99));
  DatasetEntry entry{.name = "small",
                     .published = PublishedSet{.train = 6, .validation = 6, .classes = 2, .side = 8}};
  const DatasetCheck check = checked(folder.path(), &entry);
  REQUIRE(find(check, "wrong size"));
  CHECK(find(check, "wrong size")->examples.at(0).find("large.png: 8 x 9") != std::string::npos);
  REQUIRE(find(check, "count"));
  CHECK(find(check, "count")->message.find("7 training images") == 0);
  CHECK(check.sizes == std::array<int, 4>{8, 9, 8, 8});

  put(folder / "part.bin", std::string("abc"));
  entry.published->sums = {{"part.bin", "900150983cd24fb0d6963f7d28e17f72"}, {"absent.bin", "0"}};
  CHECK(check_sums(folder.path(), entry).empty());
  put(folder / "part.bin", std::string("abd"));
  const std::vector<Finding> findings = check_sums(folder.path(), entry);
  REQUIRE(findings.size() == 1);
  CHECK(findings[0].examples.at(0).find("part.bin") != std::string::npos);
}

TEST_CASE("check: cifar100's coarse classes are not a wrong count") {
  const TemporaryFolder folder;
  put_folder(folder.path());
  DatasetEntry entry{.name = "two", .coarse_classes = 2, .published = PublishedSet{.classes = 100}};
  CHECK(checked(folder.path(), &entry).passed());
  entry.coarse_classes = 0;
  REQUIRE(find(checked(folder.path(), &entry), "count"));
}

}  // namespace tessera
