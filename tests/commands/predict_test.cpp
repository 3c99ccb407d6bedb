#include <doctest/doctest.h>

#include <algorithm>

#include "data/formats/image.h"
#include "data/sets/shapes.h"
#include "tests/commands/program.h"

using namespace tessera;

namespace {

// A checkpoint and two pictures to look at.
struct Trained {
  TemporaryFolder folder;
  std::string checkpoint = (folder / "run" / "last.safetensors").string();
  std::string star = (folder / "star.png").string(), wide = (folder / "wide.bmp.png").string();

  Trained() {
    const Said said = tessera_program(
        "train --dataset shapes --image-size 16 --epochs 1 --batch 16 --set data.train_images=32"
        " --set data.validation_images=10 --set model.dim=16 --set model.depth=2 --set "
        "schedule.warmup_epochs=0"
        " --out " +
        (folder / "run").string());
    REQUIRE(said.code == 0);
    write_png(star, draw_shape(3, 16, Random(1)).image);
    Image picture(20, 33);
    std::fill(picture.pixels.begin(), picture.pixels.end(), uint8_t{90});
    write_png(wide, picture);
  }
};

}  // namespace

TEST_CASE("summary takes the model of a run's checkpoint") {
  const Trained trained;
  const Said said = tessera_program("summary --json " + trained.checkpoint);
  REQUIRE_MESSAGE(said.code == 0, said.err);
  CHECK(said.json().at("model").at("dim") == 16);
}

TEST_CASE("predict names the likeliest classes of each picture") {
  const Trained trained;
  const Said said =
      tessera_program("predict " + trained.checkpoint + " " + trained.star + " " + trained.wide + " --json");
  CAPTURE(said.err);
  REQUIRE(said.code == 0);
  const auto rows = said.json();
  REQUIRE(rows.size() == 2);
  for (const auto& row : rows) {
    REQUIRE(row["top"].size() == 5);
    double before = 1;
    for (const auto& each : row["top"]) {
      CHECK(each["probability"] <= before);
      before = each["probability"];
    }
  }
  const Said text = tessera_program("predict " + trained.checkpoint + " " + trained.star + " --top 10");
  CHECK(text.code == 0);
  for (const std::string& name : shape_names()) CHECK(text.out.find(name) != std::string::npos);
}

TEST_CASE("predict names each picture of a folder that it cannot read, and judges the others") {
  const Trained trained;
  const std::filesystem::path photos = trained.folder / "photos";
  std::filesystem::create_directory(photos);
  std::filesystem::copy(trained.star, photos / "a.png");
  put(photos / "w.webp", "RIFF    WEBP");
  std::filesystem::create_symlink(photos / "nothing", photos / "x.png");
  const Said said = tessera_program("predict " + trained.checkpoint + " " + photos.string() + " --json");
  CHECK(said.code == 2);
  CHECK(said.json().size() == 1);
  for (const char* part : {"w.webp", "x.png", "2 of 3 pictures could not be judged"})
    CHECK_MESSAGE(said.err.find(part) != std::string::npos, part);
}

TEST_CASE("a run's test crop is that of eval, predict, diagnose and inspect") {
  const TemporaryFolder folder;
  for (const char* split : {"train", "val"})
    for (const int kind : {0, 1})
      for (int i = 0; i < 4; ++i) {
        const auto to = folder / split / (kind ? "b" : "a");
        std::filesystem::create_directories(to);
        write_png(to / (std::to_string(i) + ".png"), draw_shape(kind, 32, Random(i)).image);
      }
  const std::string run = (folder / "run").string();
  const Said trained = tessera_program(
      "train --dataset folder --image-size 16 --epochs 1 --batch 4 --set data.test_crop=0.5 --set "
      "model.dim=16"
      " --set model.depth=1 --set schedule.warmup_epochs=0 --data " +
      folder.path().string() + " --out " + run);
  CAPTURE(trained.err);
  REQUIRE(trained.code == 0);
  // Of 32 pixels the inner 16 are seen, not resized: what lies around them changes nothing, what lies in them
  // does.
  Image picture = load_image(folder / "val/b/0.png");
  const auto probability = [&](const char* name) {
    write_png(folder / name, picture);
    const Said said = tessera_program("predict " + run + " " + (folder / name).string() + " --json");
    REQUIRE(said.code == 0);
    return said.json()[0]["top"][0]["probability"].get<double>();
  };
  const auto loss = [&](const char* name) {
    const Said said =
        tessera_program("inspect " + run + " --tensor loss --json --image " + (folder / name).string());
    CAPTURE(said.err);
    REQUIRE(said.code == 0);
    return said.out;
  };
  const double before = probability("first.png");
  for (int x = 0; x < 32; ++x) picture.at(7, x)[0] = picture.at(24, x)[1] = static_cast<uint8_t>(x * 8);
  CHECK(probability("around.png") == before);
  CHECK(loss("around.png") == loss("first.png"));
  picture.at(8, 8)[0] = static_cast<uint8_t>(255 - picture.at(8, 8)[0]);
  CHECK(probability("within.png") != before);
  CHECK(loss("within.png") != loss("first.png"));
  const Said whole = tessera_program("train --dataset shapes --set data.test_crop=0.5 --dry-run");
  CHECK(whole.code == 2);
  CHECK(whole.err.find("test_crop and test_filter are for") != std::string::npos);
  CHECK(tessera_program("train --dataset folder --set data.test_crop=1.01 --dry-run").code == 2);
  CHECK(tessera_program("train --dataset folder --set data.test_filter=nearest --dry-run").code == 2);
}

TEST_CASE("predict draws where the class token looks") {
  const Trained trained;
  const std::string to = (trained.folder / "looks").string();
  const std::string common =
      "predict " + trained.checkpoint + " " + trained.star + " " + trained.wide + " --json";
  const Said plain = tessera_program(common), said = tessera_program(common + " --overlay " + to);
  CAPTURE(said.err);
  REQUIRE(said.code == 0);
  auto rows = said.json();
  for (auto& row : rows) {
    const Image picture = load_image(row["overlay"]["file"].get<std::string>());
    CHECK(picture.height == 2 * 24 + 6 + (24 + 224 + 6) + 24 + 6);  // two lines, a captioned row, the legend
    CHECK(picture.width == 2 * (224 + 6) + 6);
    CHECK(row["overlay"]["layer"] == "blocks.1.attn");
    CHECK(row["overlay"]["maps"] == nlohmann::json{"mean of the heads"});
  }
  CHECK(rows[0]["top"][0]["probability"].get<double>() ==
        doctest::Approx(plain.json()[0]["top"][0]["probability"].get<double>()).epsilon(1e-4));
}

TEST_CASE("an overlay has every head, a layer of choice and the rollout if asked") {
  const Trained trained;
  const std::string common = "predict " + trained.checkpoint + " " + trained.star + " --json --overlay " +
                             (trained.folder / "looks").string();
  const Said said = tessera_program(common + " --heads --rollout --layer 1");
  CAPTURE(said.err);
  REQUIRE(said.code == 0);
  const auto drawn = said.json()[0]["overlay"];
  CHECK(drawn["layer"] == "blocks.0.attn");
  CHECK(drawn["maps"].size() == 14);  // the mean, the rollout, 12 heads
  CHECK(drawn["maps"][1] == "rollout");
  const Image picture = load_image(drawn["file"].get<std::string>());
  CHECK(picture.height == 2 * 24 + 6 + 3 * (24 + 224 + 6) + 24 + 6);  // two rows of six heads below
  CHECK(picture.width == 6 * (224 + 6) + 6);
  for (const char* layer : {"0", "3", "-3"}) {
    const Said refused = tessera_program(common + " --layer " + layer);
    CHECK(refused.code == 2);
    CHECK(refused.complains_of("the model has 2 layers of attention"));
  }
  const Said nowhere = tessera_program("predict " + trained.checkpoint + " " + trained.star + " --heads");
  CHECK(nowhere.code == 2);
  CHECK(nowhere.complains_of("give --overlay DIR"));
}

TEST_CASE("predict takes folders and patterns, and writes a CSV") {
  const Trained trained;
  std::filesystem::create_directories(trained.folder / "photos" / "more");
  for (const char* name : {"photos/b.png", "photos/more/c.PNG", "photos/a, \"1\".png"})
    std::filesystem::copy_file(trained.star, trained.folder / name);
  put(trained.folder / "photos" / "notes.txt", "no picture");
  const std::string photos = (trained.folder / "photos").string(), csv = (trained.folder / "p.csv").string();
  const Said said =
      tessera_program("predict " + trained.checkpoint + " " + photos + " --json --top 2 --csv " + csv);
  CAPTURE(said.err);
  REQUIRE(said.code == 0);
  const auto rows = said.json();
  REQUIRE(rows.size() == 3);
  CHECK(rows[1]["image"] == photos + "/b.png");
  CHECK(rows[2]["image"] == photos + "/more/c.PNG");
  const std::string text = bytes_of(csv);
  CHECK(text.starts_with("image,class1,name1,probability1,class2,name2,probability2\n\"" + photos +
                         "/a, \"\"1\"\".png\","));
  CHECK(std::count(text.begin(), text.end(), '\n') == 4);
  const Said matched = tessera_program("predict " + trained.checkpoint + " '" + photos + "/*.png' --json");
  CHECK(matched.json().size() == 2);
  const auto refused = [&](const std::string& argument, const char* why) {
    check_refused("predict " + trained.checkpoint + " '" + argument + "'", why);
  };
  refused(photos + "/*.gif", "no file matches");
  std::filesystem::create_directory(trained.folder / "bare");
  refused((trained.folder / "bare").string(), "no .jpg, .jpeg, .png or .bmp");
}

TEST_CASE("eval writes the classes and the pictures as CSV") {
  const Trained trained;
  const std::string classes = (trained.folder / "classes.csv").string(),
                    pictures = (trained.folder / "pictures.csv").string();
  const Said said = tessera_program("eval " + trained.checkpoint + " --json --csv " + classes +
                                    " --images-csv " + pictures);
  CAPTURE(said.err);
  REQUIRE(said.code == 0);
  const std::string table = bytes_of(classes), list = bytes_of(pictures);
  CHECK(table.starts_with("class,name,images,predicted,recall,precision\n0,"));
  CHECK(std::count(table.begin(), table.end(), '\n') == 11);
  CHECK(list.starts_with("picture,source,label,predicted,right,confidence,loss\n0,"));
  CHECK(std::count(list.begin(), list.end(), '\n') == 11);
  size_t right = 0;
  for (size_t at = 0; (at = list.find(",1,0.", at)) != std::string::npos; ++at) ++right;
  CHECK(static_cast<double>(right) / 10 == said.json()["top1"].get<double>());
}

TEST_CASE("eval judges in the precision that it is told") {
  const Trained trained;
  const auto loss_in = [&](const char* precision) {
    const Said said = tessera_program("eval " + trained.checkpoint + " --json --precision " + precision);
    CAPTURE(said.err);
    REQUIRE(said.code == 0);
    return said.json()["loss"].get<double>();
  };
  const double wide = loss_in("f32"), narrow = loss_in("bf16");
  CHECK(tessera_program("eval " + trained.checkpoint + " --json").json()["loss"] == wide);
  CHECK(narrow != wide);
  CHECK(narrow == doctest::Approx(wide).epsilon(0.02));
  check_refused("eval " + trained.checkpoint + " --precision f16", "is not one of f32, tf32, bf16");

  const std::string run = (trained.folder / "narrow").string();
  const Said said = tessera_program(
      "train --dataset shapes --image-size 16 --epochs 1 --batch 16 --set data.train_images=32"
      " --set data.validation_images=10 --set model.dim=16 --set model.depth=1"
      " --set schedule.warmup_epochs=0 --precision bf16 --out " +
      run);
  CAPTURE(said.err);
  REQUIRE(said.code == 0);
  CHECK(said.out.find("tessera eval " + run + " --precision bf16\n") != std::string::npos);
}

TEST_CASE("predict and eval refuse what they cannot read, by its path") {
  const Trained trained;
  put(trained.folder / "broken.jpg", "\xff\xd8\xff\xe0 no picture");
  put(trained.folder / "broken.safetensors", "no tensors");
  check_refused("predict " + trained.checkpoint + " " + (trained.folder / "broken.jpg").string(),
                "broken.jpg");
  check_refused("predict " + trained.checkpoint + " " + (trained.folder / "absent.png").string(),
                "absent.png");
  check_refused("predict " + (trained.folder / "broken.safetensors").string() + " " + trained.star,
                "broken.safetensors");
  check_refused("predict " + (trained.folder / "run" / "state.safetensors").string() + " " + trained.star,
                "is no checkpoint");
  check_refused("predict " + trained.checkpoint, "predict: of what?");
  check_refused("eval " + trained.folder.path().string(), "neither best.safetensors nor last.safetensors");
  check_refused("eval " + trained.checkpoint + " --dataset cifar10", "--data DIR");
  check_refused("eval " + trained.checkpoint + " --split test", "--split");
}
