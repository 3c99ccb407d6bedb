// Compares with Pillow's results byte for byte: every operation and all 75 sub-policies.
#include <nlohmann/json.hpp>
#include <set>

#include "data/augment/autoaugment.h"
#include "data/formats/resize.h"
#include "engine/io/json.h"
#include "engine/io/safetensors.h"
#include "tests/data/files.h"

namespace tessera {

namespace {

TensorFile golden(const std::string& name) {
  return read_safetensors(std::string(TESSERA_FIXTURES) + "/augment/" + name + ".safetensors");
}

Image image_in(const Tensor& pixels) {
  Image image(static_cast<int>(pixels.dim(0)), static_cast<int>(pixels.dim(1)));
  std::copy_n(pixels.data<uint8_t>(), image.pixels.size(), image.pixels.begin());
  return image;
}

Image resized(const Image& image, const std::string& op, const std::string& size) {
  const size_t cross = size.find('x');
  const int height = std::stoi(size.substr(0, cross)), width = std::stoi(size.substr(cross + 1));
  return op == "resize_bicubic" ? resize_bicubic(image, height, width)
                                : resize_bilinear(image, height, width);
}

Operation operation_named(const std::string& name) {
  constexpr std::array names{"shear_x",  "shear_y",      "translate_x",   "translate_y", "rotate",
                             "color",    "contrast",     "brightness",    "sharpness",   "posterize",
                             "solarize", "solarize_add", "auto_contrast", "equalize",    "invert"};
  const auto* const found = std::find(names.begin(), names.end(), name);
  REQUIRE(found != names.end());
  return static_cast<Operation>(found - names.begin());
}

// Applies an operation under the name that it has in the file.
Image applied(Image image, const std::string& op, const std::string& magnitude) {
  if (op.starts_with("resize")) return resized(image, op, magnitude);
  Drawing drawing;
  const size_t suffix = op.rfind('_');
  const std::string filter = suffix == op.npos ? "" : op.substr(suffix + 1);
  if (filter == "nearest") drawing.shear = Filter::nearest;
  if (filter == "bilinear") drawing.shear = drawing.others = Filter::bilinear;
  if (filter == "bicubic") drawing.others = Filter::bicubic;
  const bool named = filter == "nearest" || filter == "bilinear" || filter == "bicubic";
  apply(operation_named(named ? op.substr(0, suffix) : op), std::stod(magnitude), image, Layer::picture,
        drawing);
  return image;
}

}  // namespace

TEST_CASE("golden: every operation has Pillow's bytes") {
  std::set<std::string> operations;
  for (const char* part : {"pil_ops", "pil_ops_64"}) {  // small images, and images of 64 x 64 pixels
    const TensorFile file = golden(part);
    for (const auto& [key, wanted] : file.tensors) {
      const std::string& name = key;  // clang 14's CAPTURE takes no structured binding
      if (name.starts_with("input")) continue;
      CAPTURE(name);
      const size_t first = name.find('.'), last = name.rfind('.');
      const std::string op = name.substr(0, first);
      const Image input = image_in(file.at("input" + name.substr(last)));
      CHECK(applied(input, op, name.substr(first + 1, last - first - 1)) == image_in(wanted));
      operations.insert(op);
    }
  }
  CHECK(operations.size() == 20);
}

TEST_CASE("golden: all 75 sub-policies, every operation of a probability above 0 applied") {
  const TensorFile file = golden("policies");
  std::set<std::string> seen;
  for (const auto& [key, wanted] : file.tensors) {
    const std::string& name = key;
    if (name.starts_with("input")) continue;
    CAPTURE(name);
    const size_t first = name.find('.'), last = name.rfind('.');
    Image image = image_in(file.at("input" + name.substr(last)));
    const size_t index = std::stoul(name.substr(first + 1, last - first - 1));
    int sign = 1;  // the sign of the first operation; the second has -1
    for (const PolicyStep& step : policy(name.substr(0, first))[index]) {
      if (step.probability > 0)
        apply(step.operation, policy_magnitude(step.operation, step.index, sign), image);
      sign = -1;
    }
    CHECK(image == image_in(wanted));
    seen.insert(name.substr(0, last));
  }
  CHECK(seen.size() == 75);
}

TEST_CASE("golden: the policies are those of the file's table") {
  const TensorFile file = golden("policies");
  const Json table = parse_json(file.metadata.at("table"), "table");
  const auto operation = [](std::string name) {
    if (const size_t axis = name.find_first_of("XY"); axis != name.npos)
      name.replace(axis, 1, name[axis] == 'X' ? "_x" : "_y");
    return operation_named(name == "autocontrast" ? "auto_contrast" : name);
  };
  for (const std::string& name : policy_names()) {
    CAPTURE(name);
    const auto rows = policy(name);
    REQUIRE(table.at(name).size() == rows.size());
    for (size_t i = 0; i < rows.size(); ++i)
      for (size_t k = 0; k < 2; ++k) {
        const Json& row = table.at(name)[i];
        CHECK(rows[i][k].operation == operation(row[3 * k].get<std::string>()));
        CHECK(rows[i][k].probability == row[3 * k + 1].get<double>());
        CHECK(rows[i][k].index == row[3 * k + 2].get<int>());
      }
  }
}

}  // namespace tessera
