#include "data/sets/image_folder.h"

#include <set>

#include "data/registry.h"
#include "tests/data/files.h"

namespace tessera {

namespace {

void put_class(const std::filesystem::path& folder, int count, int side = 20) {
  for (int i = 0; i < count; ++i)
    put_png(folder / (std::to_string(100 + i) + ".png"), random_image(side, side, static_cast<uint64_t>(i)));
}

std::set<std::string> sources(const Split& split) {
  std::set<std::string> all;
  for (int64_t i = 0; i < split.size(); ++i) all.insert(split.source(i));
  return all;
}

bool mentions(const Dataset& dataset, const std::string& text) {
  return std::any_of(dataset.notes.begin(), dataset.notes.end(),
                     [&](const std::string& note) { return note.find(text) != std::string::npos; });
}

}  // namespace

TEST_CASE("folder: train and val, classes in the order of their names, sub-folders too") {
  const TemporaryFolder folder;
  put_class(folder / "train/dog", 3);
  put_class(folder / "train/cat/more", 2);
  put_class(folder / "val/dog", 1);
  const Dataset dataset = open_dataset("folder", folder.path());
  CHECK(dataset.class_names == std::vector<std::string>{"cat", "dog"});
  CHECK(class_counts(*dataset.train, 2) == std::vector<int64_t>{2, 3});
  CHECK(class_counts(*dataset.validation, 2) == std::vector<int64_t>{0, 1});
  CHECK(dataset.image_shape == Shape{3, 20, 20});
  CHECK(picture(*dataset.train, 3) == random_image(20, 20, 1));
  CHECK(mentions(dataset, "only 1 of 2 classes"));
  CHECK(mentions(dataset, "image size 20"));
}

TEST_CASE("folder: pictures of any size and format are fitted to the image size") {
  const TemporaryFolder folder;
  put_png(folder / "a/1.png", random_image(50, 30, 1));
  put_png(folder / "a/2.PNG", random_image(7, 9, 2));
  put_png(folder / "b/1.jpeg", random_image(16, 16, 3));  // recognised by its bytes, not by its name
  put_png(folder / "b/2.bmp", random_image(16, 40, 4));
  DatasetOptions options;
  options.image_size = 16;
  const Dataset dataset = open_image_folder(folder.path(), options);
  CHECK(dataset.image_shape == Shape{3, 16, 16});
  for (const auto& split : {dataset.train, dataset.validation})
    for (int64_t i = 0; i < split->size(); ++i) CHECK(picture(*split, i).pixels.size() == 16 * 16 * 3);
}

TEST_CASE("folder: without val a share of each class is held out, the same for the same seed") {
  const TemporaryFolder folder;
  put_class(folder / "a", 20);
  put_class(folder / "b", 3);
  DatasetOptions options;
  options.validation_fraction = 0.2;
  const Dataset one = open_image_folder(folder.path(), options),
                two = open_image_folder(folder.path(), options);
  CHECK(class_counts(*one.train, 2) == std::vector<int64_t>{16, 2});
  CHECK(class_counts(*one.validation, 2) == std::vector<int64_t>{4, 1});
  CHECK(sources(*one.validation) == sources(*two.validation));
  std::set<std::string> all = sources(*one.train);
  all.merge(sources(*one.validation));
  CHECK(all.size() == 23);
  CHECK(mentions(one, "5 images held out"));
  options.seed = 1;
  CHECK(sources(*open_image_folder(folder.path(), options).validation) != sources(*one.validation));
  options.validation_fraction = 1;
  check_refused([&] { open_image_folder(folder.path(), options); }, "fraction of 1");
}

TEST_CASE("folder: what is wrong is named, what is left out is said") {
  const TemporaryFolder folder;
  const auto open = [&] { return open_image_folder(folder.path(), {}); };
  check_refused([&] { open_image_folder(folder / "none", {}); }, "none", "not a folder");
  check_refused(open, "0 class folders", "DIR/CLASS");
  put_class(folder / "train/cat", 2);
  put_class(folder / "train/dog", 2);
  put(folder / "train/dog/readme.txt", std::string("hello"));
  CHECK(mentions(open(), "1 files that are no pictures left out, first"));

  put_class(folder / "val/dogs", 1);
  check_refused(open, "val/dogs", "training folder lacks", "'dog'");
  std::filesystem::remove_all(folder / "val");
  put(folder / "train/dog/a.webp", std::string("RIFF"));
  check_refused(open, "a.webp", "JPEG, PNG and BMP");
  std::filesystem::remove(folder / "train/dog/a.webp");
  put_png(folder / "train/loose.png", Image(4, 4));
  check_refused(open, "loose.png", "outside a class folder");
  std::filesystem::remove(folder / "train/loose.png");
  std::filesystem::create_directories(folder / "train/empty");
  check_refused(open, "train/empty", "holds no JPEG");
  std::filesystem::remove(folder / "train/empty");
  std::filesystem::remove(folder / "train/dog/100.png");
  check_refused(open, "dog has one picture");
  std::filesystem::create_directory_symlink(folder / "train/cat", folder / "train/cat/again");
  check_refused(open, "folders deep");
}

TEST_CASE("folder: the cache keeps no more than it may, and gives the same pixels") {
  const TemporaryFolder folder;
  put_class(folder / "a", 3);
  FileSplit::Item first{folder / "a/100.png", 0}, second{folder / "a/101.png", 0};
  const FileSplit split({first, second}, 20, 20 * 20 * 3 + 5);  // the cache has room for one image
  const Image one = picture(split, 0), two = picture(split, 1);
  std::filesystem::remove_all(folder / "a");
  CHECK(picture(split, 0) == one);
  check_refused([&] { picture(split, 1); }, "101.png");
  CHECK(two == random_image(20, 20, 1));
}

TEST_CASE("folder: validation pictures are cropped as asked, training pictures are whole") {
  const TemporaryFolder folder;
  for (const char* split : {"train", "val"})
    for (const char* name : {"cat", "dog"}) put_class(folder / split / name, 2);
  const Dataset data = open_dataset("folder", folder.path(), {.image_size = 10, .test_fit = {0.5, true}});
  const Image stored = load_image(folder / "val/cat/100.png");
  CHECK(picture(*data.validation, 0) == fit_square(stored, 10, "a", {0.5, true}));
  CHECK(picture(*data.train, 0) == fit_square(load_image(folder / "train/cat/100.png"), 10, "a"));
}

TEST_CASE("folder: a class whose name is not UTF-8 is refused before anything is trained") {
  const TemporaryFolder folder;
  put_class(folder / "dog", 2);
  put_class(folder / "caf\xe9", 2);
  check_refused([&] { open_dataset("folder", folder.path()); }, "'caf\\xe9' is not UTF-8");
}

TEST_CASE("folder: everything that is in the way is said at once, up to fifty lines") {
  const TemporaryFolder folder;
  put_class(folder / "a", 2);
  put_class(folder / "b", 2);
  put(folder / "notes.txt", std::string("beside the classes"));
  CHECK(mentions(open_image_folder(folder.path(), {}), "1 files that are no pictures left out, first"));
  put(folder / "a/1.GIF", std::string("GIF8"));
  put(folder / "b/2.svg", std::string("<svg>"));
  const std::string two = error_of([&] { open_image_folder(folder.path(), {}); });
  CHECK(
      two.starts_with("folder: 2 things are in the way:\n" + (folder / "a/1.GIF").string() + ": JPEG, PNG"));
  CHECK(two.ends_with("or remove it"));
  for (int i = 0; i < 60; ++i)
    put(folder / "a" / std::filesystem::path(std::to_string(i) + ".tif"), random_bytes(4, 1));
  const std::string many = error_of([&] { open_image_folder(folder.path(), {}); });
  CHECK(many.starts_with("folder: 62 things are in the way:\n"));
  CHECK((many.ends_with("\n...") && std::count(many.begin(), many.end(), '\n') == 51));
}

TEST_CASE("folder: faults of every kind, of both splits, are said in one list") {
  const TemporaryFolder folder;
  put_class(folder / "train/cat", 2);
  put_class(folder / "train/dog", 2);
  put_class(folder / "val/cta", 1);
  put_png(folder / "train/loose.png", Image(4, 4));
  put(folder / "train/dog/a.webp", std::string("RIFF"));
  std::filesystem::create_directories(folder / "train/empty");
  const std::string all = error_of([&] { open_image_folder(folder.path(), {}); });
  CHECK(all.starts_with("folder: 4 things are in the way:\n"));
  for (const char* part : {"train/loose.png lies outside a class folder", "dog/a.webp: JPEG, PNG",
                           "train/empty holds no JPEG", "val/cta is a class that the training folder lacks"})
    CHECK_MESSAGE(all.find(part) != std::string::npos, part);
  const TemporaryFolder alone;
  for (const char* name : {"a", "b"}) put_class(alone / name, 1);
  CHECK(error_of([&] {
          open_image_folder(alone.path(), {});
        }).starts_with("folder: 2 things are in the way:\n" + (alone / "a").string() + " has one picture"));
}

TEST_CASE("folder: the image size is that of the first picture that can be read") {
  const TemporaryFolder folder;
  put_class(folder / "a", 3, 12);
  put_class(folder / "b", 2, 12);
  put(folder / "a/000.png", std::string("no picture"));
  put(folder / "a/001.png", std::string("none either"));
  CHECK(open_image_folder(folder.path(), {}).image_shape == Shape{3, 12, 12});
  for (const char* name : {"a/100.png", "a/101.png", "a/102.png", "b/100.png", "b/101.png"})
    put(folder / name, std::string("x"));
  check_refused([&] { open_image_folder(folder.path(), {}); }, "a/00", "not a JPEG, PNG or BMP file");
  check_refused([&] { open_image_folder("", {}); }, "folder: no data folder was given");
  check_refused([&] { open_image_folder(folder.path(), {.validation_fraction = 0}); }, "fraction of 0");
}

TEST_CASE("folder: validation pictures lie in a folder of one of four names, by class") {
  for (const char* name : {"val", "valid", "validation", "test"}) {
    const TemporaryFolder folder;
    for (const char* each : {"cat", "dog"}) put_class(folder / "train" / each, 2);
    std::filesystem::create_directories(folder / name);
    check_refused([&] { open_image_folder(folder.path(), {}); },
                  std::string(name) + " holds no class folder");
    for (const char* each : {"cat", "dog"}) put_class(folder / name / each, 1);
    const Dataset dataset = open_image_folder(folder.path(), {});
    CHECK(dataset.validation->size() == 2);
    CHECK(mentions(dataset, "validation images from " + (folder / name).string()));
    CHECK_FALSE(mentions(dataset, "classes have validation images"));
  }
}

}  // namespace tessera
