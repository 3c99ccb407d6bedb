#include "data/sets/imagenet.h"

#include "data/registry.h"
#include "tests/data/files.h"

namespace tessera {

namespace {

namespace fs = std::filesystem;

const std::string goldfish = "n01443537", tench = "n01440764", goose = "n01855672";

void put_picture(const fs::path& path) {
  fs::create_directories(path.parent_path());
  write_png(path, Image(4, 4));  // a PNG named .JPEG; ImageNet has such a file
}

// Two classes, tench first.
void put_training(const fs::path& root) {
  for (const std::string& wnid : {goldfish, tench})
    for (const char* number : {"_1.JPEG", "_22.JPEG"}) put_picture(root / "train" / wnid / (wnid + number));
}

}  // namespace

TEST_CASE("imagenet: class folders on both sides") {
  const TemporaryFolder folder;
  put_training(folder.path());
  put_picture(folder / "val" / fs::path(goldfish) / "ILSVRC2012_val_00000007.JPEG");
  put(folder / "LOC_synset_mapping.txt", "n01440764 tench, Tinca tinca\nn09999999 other\n");
  const Dataset data = open_dataset("imagenet", folder.path(), {.image_size = 8});
  CHECK(data.class_names == std::vector<std::string>{"tench, Tinca tinca", goldfish});
  CHECK(class_counts(*data.train, 2) == std::vector<int64_t>{2, 2});
  CHECK(class_counts(*data.validation, 2) == std::vector<int64_t>{0, 1});
  CHECK(data.image_shape == Shape{3, 8, 8});
  CHECK(picture(*data.train, 0).height == 8);
  CHECK(data.notes.at(0).find("2 of the 1000 classes") != std::string::npos);
}

TEST_CASE("imagenet: a flat val by LOC_val_solution.csv") {
  const TemporaryFolder folder;
  put_training(folder.path());
  for (const char* number : {"1", "2", "3"})
    put_picture(folder / "val" / fs::path(std::string("ILSVRC2012_val_0000000") + number + ".JPEG"));
  check_refused([&] { open_imagenet(folder.path(), {}, 0); }, "imagenet", "val", "LOC_val_solution.csv");
  const std::string two =
      "ImageId,PredictionString\nILSVRC2012_val_00000002,n01443537 1 2 3 4\n"
      "ILSVRC2012_val_00000001,n01440764 85 1 499 272 n01440764 1 2 3 4\n";
  put(folder / "LOC_val_solution.csv", two);
  check_refused([&] { open_imagenet(folder.path(), {}, 0); }, "val_00000003.JPEG", "no label");
  put(folder / "LOC_val_solution.csv", two + "ILSVRC2012_val_00000003,n01443537 0 0 1 1\n");
  const Dataset data = open_imagenet(folder.path(), {}, 0);
  CHECK(data.validation->size() == 3);
  CHECK(data.validation->label(0) == 0);
  CHECK(data.validation->label(1) == 1);
  put(folder / "LOC_val_solution.csv", two + "ILSVRC2012_val_00000003,n01855672 0 0 1 1\n");
  check_refused([&] { open_imagenet(folder.path(), {}, 0); }, "n01855672", "training folder lacks");
}

TEST_CASE("imagenet-100: the first hundred classes, whatever else is there") {
  const TemporaryFolder folder;
  std::vector<std::string> wnids{tench, goose, "n01860187", "n02085620"};
  for (int i = 0; i < 98; ++i) wnids.push_back("n0" + std::to_string(1500000 + i));
  for (const std::string& wnid : wnids)
    put(folder / "train" / fs::path(wnid) / (wnid + "_1.JPEG"), std::vector<uint8_t>{1});
  for (const std::string& wnid : {goose, wnids[2]})
    put(folder / "val" / fs::path(wnid) / "ILSVRC2012_val_00000001.JPEG", std::vector<uint8_t>{1});
  const Dataset data = open_dataset("imagenet-100", folder.path());
  CHECK(data.classes() == 100);
  CHECK(data.class_names.front() == tench);
  CHECK(data.class_names.back() == goose);
  CHECK(data.train->size() == 100);
  CHECK(data.validation->size() == 1);
  CHECK(data.validation->label(0) == 99);
  CHECK(data.image_shape == Shape{3, 224, 224});
  fs::remove_all(folder / "train" / fs::path(wnids[5]));
  check_refused([&] { open_dataset("imagenet-100", folder.path()); }, "n01855672", "n01860187", "folder");
}

TEST_CASE("imagenet: what it refuses") {
  const TemporaryFolder folder;
  const auto refused = [&](const auto&... parts) {
    check_refused([&] { open_imagenet(folder.path(), {}, 0); }, "imagenet", parts...);
  };
  refused("train");
  put_training(folder.path());
  refused("val", "missing");
  fs::create_directories(folder / "val");
  refused("LOC_val_solution.csv");
  put_picture(folder / "val" / fs::path("cats") / "1.JPEG");
  refused("cats", "no class folder");
  fs::rename(folder / "val" / fs::path("cats"), folder / "val" / fs::path(goose));
  refused(goose, "training folder lacks");
  fs::rename(folder / "val" / fs::path(goose), folder / "val" / fs::path(tench));
  open_imagenet(folder.path(), {}, 0);
  put_picture(folder / "train" / fs::path(tench) / (goldfish + "_3.JPEG"));
  refused(goldfish + "_3.JPEG", tench + "_NUMBER");
  fs::remove(folder / "train" / fs::path(tench) / (goldfish + "_3.JPEG"));
  put(folder / "train" / "n01440765.tar", std::vector<uint8_t>{1});
  refused("n01440765.tar", "unpack");
  check_refused([&] { open_imagenet(folder.path(), {}, 100); }, "imagenet-100");
}

TEST_CASE("imagenet: folders that hold less, or something else, than a class's pictures") {
  const TemporaryFolder folder;
  const auto refused = [&](const auto&... parts) {
    check_refused([&] { open_imagenet(folder.path(), {}, 0); }, "imagenet: ", parts...);
  };
  fs::create_directories(folder / "val");
  put_picture(folder / "train" / fs::path(tench) / (tench + "_1.JPEG"));
  refused("train holds 1 class folders");
  for (const char* name : {"n0144353", "x01443537", "n0144353a", "n014435/7"}) {
    fs::create_directories(folder / "train" / fs::path(name));
    refused("is no class folder; they are called n and 8 digits");
    fs::remove_all(folder / "train" / fs::path(name));
  }
  fs::remove_all(folder / "train/n014435");
  fs::create_directories(folder / "train" / fs::path(goldfish));
  refused(goldfish + " holds no picture");
  fs::create_directories(folder / "train" / fs::path(goldfish) / "more");
  refused("more: pictures were expected here");
  check_refused([&] { open_imagenet(folder.path(), {}, 100); },
                "imagenet-100: the training folder holds 2 classes");
  check_refused([&] { open_imagenet(folder.path(), {}, 100); }, "not 100");
}

TEST_CASE("imagenet: a part of the classes leaves out the pictures of the others") {
  const TemporaryFolder folder;
  put_training(folder.path());
  for (const char* number : {"1", "2"})
    put_picture(folder / "val" / fs::path(std::string("v_") + number + ".JPEG"));
  const auto open = [&] { return open_imagenet(folder.path(), {}, 1); };  // tench alone
  const auto solution = [&](const std::string& lines) { put(folder / "val/LOC_val_solution.csv", lines); };
  put(folder / "val/notes.txt", "no picture");
  solution("v_1,n01440764 1\nv_2,n01443537 1\nv_3,goldfish\n");
  CHECK(open().validation->size() == 1);
  CHECK(open().classes_of_whole == 1000);
  solution("v_1,n01443537 1\nv_2,n01443537 1\n");
  check_refused(open, "imagenet-1: ", "val holds no picture of these classes");
  solution("v_1 n01440764\n");
  check_refused(open, "LOC_val_solution.csv: line 1 'v_1 n01440764' has no comma");
  put(folder / "synset_words.txt", "n01440764\ttench\nshort\nn0144353x goldfish\n");
  solution("v_1,n01440764 1\nv_2,n01443537 1\n");
  CHECK(open().class_names == std::vector<std::string>{"tench"});
}

}  // namespace tessera
