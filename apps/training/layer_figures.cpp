#include "apps/training/layer_figures.h"

#include <algorithm>
#include <cctype>

namespace tessera {

namespace {

std::vector<std::string_view> parts_of(std::string_view path) {
  std::vector<std::string_view> parts;
  for (size_t at = 0; at <= path.size();) {
    const size_t end = std::min(path.find('.', at), path.size());
    parts.push_back(path.substr(at, end - at));
    at = end + 1;
  }
  return parts;
}

bool is_number(std::string_view part) {
  return !part.empty() && std::ranges::all_of(part, [](unsigned char c) { return std::isdigit(c) != 0; });
}

std::string joined(const std::vector<std::string_view>& parts, size_t count) {
  std::string path;
  for (size_t i = 0; i < std::min(count, parts.size()); ++i)
    path += (i > 0 ? "." : "") + std::string(parts[i]);
  return path;
}

// "blocks", and "blocks_token" of a second kind of blocks.
bool names_blocks(std::string_view part) {
  const size_t at = part.find("blocks");
  if (at == part.npos) return false;
  const std::string_view rest = part.substr(at + 6);
  return rest.empty() || (rest.size() > 1 && rest.front() == '_');
}

}  // namespace

const std::vector<LayerColumn>& layer_columns() {
  static const std::vector<LayerColumn> columns{
      {"activation_rms", &LayerFigures::activation_rms},
      {"gradient_rms", &LayerFigures::gradient_rms},
      {"weight_rms", &LayerFigures::weight_rms},
      {"weight_gradient_rms", &LayerFigures::weight_gradient_rms},
      {"update_ratio", &LayerFigures::update_ratio},
      {"temperature", &LayerFigures::temperature},
      {"gate", &LayerFigures::gate},
  };
  return columns;
}

std::string layer_of(std::string_view path) {
  const std::vector<std::string_view> parts = parts_of(path);
  for (size_t i = 0; i + 1 < parts.size(); ++i)
    if (names_blocks(parts[i]) && is_number(parts[i + 1])) return joined(parts, i + 2);
  const auto numbered = static_cast<size_t>(std::ranges::find_if(parts, is_number) - parts.begin());
  if (numbered == parts.size()) return std::string(parts.front());
  const std::string_view group = numbered > 0 ? parts[numbered - 1] : std::string_view();
  const bool staged = group == "layers" || group == "transformers" || group == "stages";
  return joined(parts, numbered + (staged ? 2 : 1));
}

}  // namespace tessera
