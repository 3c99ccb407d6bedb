#include "data/sets/tiny_imagenet.h"

#include "data/registry.h"
#include "tests/data/files.h"

namespace tessera {

namespace {

// Two classes, listed unsorted as in the real wnids.txt; PNG bytes under the real names.
void put_all(const std::filesystem::path& root) {
  std::filesystem::create_directories(root);
  put(root / "wnids.txt", std::string("n02\nn01\n"));
  put(root / "words.txt", std::string("n00\tentity\nn01\tgoldfish, Carassius auratus\nn02\ttench\n"));
  for (const std::string wnid : {"n01", "n02"})
    for (const int number : {3, 0})
      put_png(root / "train" / wnid / "images" / (wnid + "_" + std::to_string(number) + ".JPEG"),
              random_image(64, 64, static_cast<uint64_t>(number)));
  put(root / "train" / "n01" / "n01_boxes.txt", std::string("n01_0.JPEG\t0\t0\t1\t1\n"));
  put_png(root / "val" / "images" / "val_0.JPEG", random_image(64, 64, 10));
  put_png(root / "val" / "images" / "val_1.JPEG", random_image(64, 64, 11));
  put(root / "val" / "val_annotations.txt",
      std::string("val_0.JPEG\tn02\t0\t32\t44\t62\nval_1.JPEG\tn01\t1\t2\t3\t4\n"));
}

}  // namespace

TEST_CASE("tiny-imagenet: classes are the sorted wnids, validation labels its annotations") {
  const TemporaryFolder folder;
  put_all(folder / "tiny-imagenet-200");
  for (const auto& dir : {folder.path(), folder / "tiny-imagenet-200"}) {
    const Dataset dataset = open_dataset("tiny-imagenet", dir);
    CHECK(dataset.class_names == std::vector<std::string>{"goldfish, Carassius auratus", "tench"});
    CHECK(dataset.train->size() == 4);
    CHECK(dataset.train->label(1) == 0);
    CHECK(dataset.train->label(2) == 1);
    CHECK(dataset.train->source(2).ends_with("n02_0.JPEG"));
    CHECK(picture(*dataset.train, 3) == random_image(64, 64, 3));
    CHECK(dataset.validation->label(0) == 1);
    CHECK(dataset.validation->label(1) == 0);
    CHECK(picture(*dataset.validation, 0) == random_image(64, 64, 10));
    REQUIRE(dataset.notes.size() == 1);
    CHECK(dataset.notes[0] == "holds 4 of the 100000 training images");
  }
}

TEST_CASE("tiny-imagenet: what is wrong is named") {
  const TemporaryFolder folder;
  const auto open = [&] { open_tiny_imagenet(folder.path(), {}); };
  const auto annotate = [&](const std::string& lines) { put(folder / "val" / "val_annotations.txt", lines); };
  check_refused(open, "wnids.txt", "tiny-imagenet-200.zip");
  put_all(folder.path());
  CHECK_NOTHROW(open());

  annotate("val_0.JPEG\tn02\n");
  check_refused(open, "val_1.JPEG", "no line");
  annotate("val_0.JPEG\tn02\nval_1.JPEG\tn01\nval_2.JPEG\tn01\n");
  check_refused(open, "val_2.JPEG", "missing");
  annotate("val_0.JPEG\tn02\nval_1.JPEG\tn01\n../val_annotations.txt\tn01\n");
  check_refused(open, "val_annotations.txt", "line 3", "got a path");
  annotate("val_0.JPEG\tn02\nval_0.JPEG\tn01\n");
  check_refused(open, "val_0.JPEG", "twice");
  annotate("val_0.JPEG\tn02\nval_1.JPEG\tn77\n");
  check_refused(open, "line 2", "n77");
  annotate("val_0.JPEG n02\n");
  check_refused(open, "line 1", "val_0.JPEG n02");
  std::filesystem::remove(folder / "val" / "val_annotations.txt");
  check_refused(open, "val_annotations.txt", "missing", "folder");
  put_all(folder.path());

  put_png(folder / "train" / "n01" / "images" / "n02_9.JPEG", Image(64, 64));
  check_refused(open, "n02_9.JPEG", "n01_NUMBER.JPEG");
  std::filesystem::remove(folder / "train" / "n01" / "images" / "n02_9.JPEG");
  std::filesystem::create_directories(folder / "train" / "n03");
  check_refused(open, "n03", "not a class");
  std::filesystem::remove(folder / "train" / "n03");
  std::filesystem::remove_all(folder / "train" / "n02");
  check_refused(open, "train/n02/images", "no such folder");
  for (const std::string& path : {std::string("/n03"), std::string(".."), std::string("n03\0.txt", 8)}) {
    put(folder / "wnids.txt", "n01\nn02\n" + path + "\n");
    check_refused(open, "wnids.txt", "got a path");
  }
  put(folder / "wnids.txt", std::string("n01\nn01\n"));
  check_refused(open, "wnids.txt", "n01", "twice");
  put_all(folder.path());
  put(folder / "wnids.txt", std::string("n01\nn02\nn09\n"));
  check_refused(open, "n09");
}

TEST_CASE("tiny-imagenet: an image that cannot be decoded is named when it is read") {
  const TemporaryFolder folder;
  put_all(folder.path());
  put(folder / "train" / "n02" / "images" / "n02_0.JPEG", std::string("\xFF\xD8\xFF no JPEG"));
  const Dataset dataset = open_tiny_imagenet(folder.path(), {});
  check_refused([&] { picture(*dataset.train, 2); }, "n02_0.JPEG");
}

TEST_CASE("tiny-imagenet: lists that are empty, or whose lines are") {
  const TemporaryFolder folder;
  const auto open = [&] { open_tiny_imagenet(folder.path(), {.image_size = 32}); };
  put_all(folder.path());
  put(folder / "wnids.txt", std::string("\nn01\n"));
  check_refused(open, "wnids.txt: an empty line where a wnid was expected");
  put(folder / "wnids.txt", std::string("\n"));
  check_refused(open, "wnids.txt: an empty line where a wnid was expected");
  put_all(folder.path());
  put(folder / "words.txt", std::string("n01 goldfish\nn02\ttench\n"));
  check_refused(open, "words.txt: no line for n01, which wnids.txt lists");
  put_all(folder.path());
  put(folder / "val" / "val_annotations.txt", std::string("\tn02\n"));
  check_refused(open, "line 1 '\tn02' is not FILE<tab>WNID");
  std::filesystem::remove_all(folder / "val" / "images");
  std::filesystem::create_directory(folder / "val" / "images");
  put(folder / "val" / "val_annotations.txt", std::string());
  check_refused(open, "val_annotations.txt: lists no image");
  std::filesystem::remove_all(folder / "train" / "n01" / "images");
  std::filesystem::create_directory(folder / "train" / "n01" / "images");
  check_refused(open, "n01/images holds no image");
}

}  // namespace tessera
