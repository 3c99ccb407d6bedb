#include "apps/reporting/token_sheet.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "apps/reporting/sample_grid.h"
#include "apps/reporting/sheet.h"
#include "models/parts/tokenizer.h"

namespace tessera {

namespace {

constexpr int margin = 16, gap = 6, least_side = 160;  // the last is a panel's, so that patches are seen

// The pixels that the ratio of a shift is of, which are the step of the tokens but for T2T: there they are
// the stride of its first split.
int64_t shifted_unit(const std::string& kind, int64_t step) { return kind == "soft_split" ? 2 : step; }

int64_t step_of(Fields& tokenizer, const std::string& kind) {
  if (kind == "soft_split") return int64_t{1} << tokenizer.get<int64_t>("splits", Range::between(1, 30));
  if (tokenizer.has("patch_size")) return tokenizer.get<int64_t>("patch_size", Range::at_least(1));
  int64_t step = 1;
  for (const int64_t stride : tokenizer.get("strides", std::vector<int64_t>{2, 1, 2, 1})) step *= stride;
  return step;
}

// The view of a tokenizer without patches of the image: a stem of convolutions, or T2T's split.
TokenView stem_view(Fields tokenizer, const std::string& kind) {
  TokenView view;
  view.step = step_of(tokenizer, kind);
  if (!tokenizer.has("directions")) return view;
  const int64_t unit = shifted_unit(kind, view.step);
  view.directions = read_directions(tokenizer);
  view.shift = shift_of(unit, read_shift_ratio(tokenizer, unit, true));
  return view;
}

// "up left": where the copy's pixels went, read off a copy of a single pixel.
std::string way_of(const double* moved) {
  const auto place = std::max_element(moved, moved + 9) - moved;
  const auto row = place / 3, column = place % 3;
  const std::string vertical = row == 0 ? "up" : row == 2 ? "down" : "";
  const std::string horizontal = column == 0 ? "left" : column == 2 ? "right" : "";
  return vertical + (vertical.empty() || horizontal.empty() ? "" : " ") + horizontal;
}

// The panels of pictures: rows of them under a title, and over each column its name.
class Panels {
 public:
  Panels(const std::string& title, const std::vector<std::string>& names, int64_t rows, int side)
      : side_(side),
        factor_(std::max(1, (least_side + side - 1) / side)),
        sheet_(2 * margin + 2 * Sheet::line_height + static_cast<int>(rows) * row_height(),
               2 * margin + static_cast<int>(names.size()) * (side * factor_ + gap) - gap) {
    sheet_.write(title, margin, margin, sheet_.image().width - 2 * margin);
    for (size_t k = 0; k < names.size(); ++k)
      sheet_.write(names[k], margin + Sheet::line_height, x_of(static_cast<int>(k)), side_ * factor_, true);
  }

  void caption(int64_t row, const std::string& text) {
    sheet_.write(text, y_of(row), margin, sheet_.image().width - 2 * margin);
  }
  void put(int64_t row, int64_t column, const Image& image, int64_t step) {
    const int y = y_of(row) + Sheet::line_height, x = x_of(static_cast<int>(column));
    sheet_.put(image, y, x, factor_);
    sheet_.rule(y, x, side_ * factor_, static_cast<int>(step) * factor_);
  }
  const Image& image() const { return sheet_.image(); }

 private:
  int row_height() const { return Sheet::line_height + side_ * factor_ + 2 * gap; }
  int x_of(int column) const { return margin + column * (side_ * factor_ + gap); }
  int y_of(int64_t row) const {
    return margin + 2 * Sheet::line_height + static_cast<int>(row) * row_height();
  }

  int side_, factor_;
  Sheet sheet_;
};

}  // namespace

TokenView token_view(const Json& model, const std::string& name) {
  const Json& seeing = model.contains("backbone") ? model["backbone"] : model;
  check(seeing.contains("tokenizer"), name, ": ", seeing.value("arch", "this model"),
        " has no tokenizer: it convolves the whole picture and cuts no tokens out of it; a transformer is "
        "wanted, s-vit or vit say");
  const Json& tokenizer = seeing["tokenizer"];
  const std::string kind = tokenizer.value("kind", "");
  if (kind != "patch" && kind != "shifted") return stem_view(Fields(tokenizer, name, "tokenizer"), kind);
  const Tokenizer::Options o = read_tokenizer(Fields(tokenizer, name, "tokenizer"));
  TokenView view;
  view.patch = o.patch_size;
  view.step = o.stride > 0 ? o.stride : o.patch_size;
  if (!o.shifted) return view;
  view.directions = o.directions;
  view.shift = shift_of(o.patch_size, o.ratio);
  return view;
}

std::string describe(const TokenView& view) {
  std::string text = view.patch > 0
                         ? fmt::format("patches of {0} x {0} pixels{1}", view.patch,
                                       view.step < view.patch ? fmt::format(", every {}", view.step) : "")
                         : fmt::format("a token every {0} x {0} pixels", view.step);
  if (view.directions)
    text += fmt::format("; {} copies shifted by {} pixel{}, the mean colour where nothing comes in",
                        copies(*view.directions), view.shift, view.shift == 1 ? "" : "s");
  return text;
}

std::vector<std::string> panel_names(const TokenView& view) {
  std::vector<std::string> names{"picture"};
  if (!view.directions) return names;
  const Tensor dot = Tensor::from({0, 0, 0, 0, 1, 0, 0, 0, 0}, {1, 1, 3, 3});
  const std::vector<double> moved = shifted_copies(dot, *view.directions, 1).values();
  for (int64_t k = 1; k <= copies(*view.directions); ++k) names.push_back(way_of(moved.data() + 9 * k));
  return names;
}

Image token_sheet(const std::string& title, const TokenView& view, const Tensor& pictures,
                  const std::vector<std::string>& captions, const Normalisation& normalisation) {
  const Tensor seen = view.directions ? shifted_copies(pictures, *view.directions, view.shift) : pictures;
  const int64_t rows = pictures.dim(0), side = pictures.dim(2);
  const std::vector<std::string> names = panel_names(view);
  Panels panels(title, names, rows, static_cast<int>(side));
  const float* pixels = seen.data<float>();
  for (int64_t row = 0; row < rows; ++row) {
    panels.caption(row, captions[static_cast<size_t>(row)]);
    for (int64_t k = 0; k < std::ssize(names); ++k, pixels += 3 * side * side)
      panels.put(row, k, drawn_image(pixels, static_cast<int>(side), normalisation), view.step);
  }
  return panels.image();
}

}  // namespace tessera
