// The functions that programs embed, under the names of the installed package.

#include <doctest/doctest.h>
#include <tessera/training.h>

#include <numeric>
#include <type_traits>

#include "tests/error_of.h"
#include "tests/training/small_run.h"

using namespace tessera;

namespace {

// Pictures of 8 x 8 pixels whose brightness tells their class.
Pictures plain_pictures(int count) {
  Pictures pictures{8, 8, 1, {}, {}};
  for (int i = 0; i < count; ++i) {
    pictures.labels.push_back(i % 2);
    pictures.pixels.insert(pictures.pixels.end(), 64, static_cast<uint8_t>(i % 2 == 0 ? 40 + i : 200 - i));
  }
  return pictures;
}

Dataset plain_dataset() { return memory_dataset({"dark", "light"}, plain_pictures(24), plain_pictures(8)); }

TrainConfig plain_config(const Dataset& data, const Json& changes = Json::object()) {
  Json all{{"epochs", 2}, {"batch", 8}, {"model", small_vit}};
  all.merge_patch(changes);
  return train_config("vit", data, all);
}

}  // namespace

TEST_CASE("memory_dataset: pictures, labels and their normalisation") {
  const Dataset data = plain_dataset();
  CHECK(data.image_shape == Shape{3, 8, 8});
  CHECK(data.train->size() == 24);
  CHECK(data.validation->label(3) == 1);
  Image image;
  data.train->image(2, image);
  CHECK(int{image.pixels[5]} == 42);
  // 12 values 40, 42 .. 62 and 12 values 199, 197 .. 177: their mean is (51 + 188) / 2
  CHECK(data.normalisation.mean[0] == doctest::Approx(119.5 / 255));
  CHECK(data.normalisation.deviation[2] == doctest::Approx(std::sqrt(68.5 * 68.5 + 143.0 / 12 * 4) / 255));
}

TEST_CASE("memory_dataset: what does not fit is refused by name") {
  const auto refused = [](Pictures train, Pictures validation) {
    return error_of([&] { memory_dataset({"dark", "light"}, std::move(train), std::move(validation)); });
  };
  Pictures wrong = plain_pictures(4);
  wrong.labels[1] = 2;
  CHECK(refused(wrong, plain_pictures(2)).find("label 2 in the training split") != std::string::npos);
  CHECK(refused(plain_pictures(4), {}).find("the validation split has no pictures") != std::string::npos);
  Pictures small{4, 4, 1, std::vector<uint8_t>(16), {0}};
  CHECK(refused(plain_pictures(4), small).find("training pictures are 8 x 8, validation pictures 4 x 4") !=
        std::string::npos);
  wrong = plain_pictures(4);
  wrong.pixels.pop_back();
  CHECK(refused(wrong, plain_pictures(2)).find("255 bytes of pixels") != std::string::npos);
}

TEST_CASE("train: a run that is broken off and resumed by the same call ends as an unbroken one") {
  const TemporaryFolder folder;
  const Dataset data = plain_dataset();
  const TrainConfig config = plain_config(data);
  const Quiet quiet;
  CHECK(train(config, data, folder / "whole") == Ending::finished);
  CHECK(train(config, data, folder / "broken", {.steps = 4}) == Ending::stopped);
  CHECK(train(config, data, folder / "broken") == Ending::finished);
  CHECK(train(config, data, folder / "broken") == Ending::finished);  // nothing is left to do
  const Checkpoint whole = read_checkpoint(folder / "whole"), broken = read_checkpoint(folder / "broken");
  for (const auto& [name, tensor] : whole.model.parameters.state())
    for (const auto& [other_name, other] : broken.model.parameters.state())
      if (name == other_name) CHECK_MESSAGE(tensor.values() == other.values(), name);
  CHECK(evaluate(whole, data).loss() == evaluate(broken, data).loss());
  CHECK(evaluate(whole, data).images == 8);
}

TEST_CASE("train: a folder with the run of another config is refused") {
  const TemporaryFolder folder;
  const Dataset data = plain_dataset();
  const Quiet quiet;
  CHECK(train(plain_config(data), data, folder / "run", {.steps = 1}) == Ending::stopped);
  const std::string error = error_of([&] {
    train(plain_config(data, {{"epochs", 3}}), data, folder / "run");
  });
  CHECK(error.find("is of another run: its \"epochs\" differs") != std::string::npos);
}

TEST_CASE("evaluate: a data set of other classes is refused") {
  const TemporaryFolder folder;
  const Dataset data = plain_dataset();
  const Quiet quiet;
  train(plain_config(data), data, folder / "run");
  const Dataset other = memory_dataset({"night", "day"}, plain_pictures(4), plain_pictures(4));
  const std::string error = error_of([&] { evaluate(read_checkpoint(folder / "run"), other); });
  CHECK(error.find("they must be the same") != std::string::npos);
}
