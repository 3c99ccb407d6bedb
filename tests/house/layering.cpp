#include "tests/house/layering.h"

#include <algorithm>
#include <cstddef>
#include <fstream>
#include <iterator>
#include <map>
#include <optional>
#include <regex>
#include <set>
#include <sstream>
#include <string_view>

namespace tessera::house {

namespace fs = std::filesystem;

namespace {

using Names = std::set<std::string, std::less<>>;

const Names whole_engine = {"engine/core", "engine/autograd", "engine/ops",
                            "engine/nn",   "engine/optim",    "engine/io"};

Names operator+(Names a, const Names& b) {
  a.insert(b.begin(), b.end());
  return a;
}

const Names below_apps =
    whole_engine + Names{"engine/check", "engine/cpu", "models",       "models/check", "data",
                         "data/formats", "data/sets",  "data/augment", "data/fetch"};

// Each layer and those that it may include besides itself.
const std::map<std::string, Names, std::less<>> layers = {
    {"engine", whole_engine},  // engine.h, the list of public headers
    {"engine/core", {}},
    {"engine/autograd", {"engine/core"}},
    {"engine/cpu", {"engine/core"}},
    {"engine/ops", {"engine/core", "engine/autograd", "engine/cpu"}},
    {"engine/nn", {"engine/core", "engine/autograd", "engine/ops"}},
    {"engine/optim", {"engine/core", "engine/autograd", "engine/ops", "engine/nn", "engine/cpu"}},
    {"engine/io", {"engine/core"}},
    {"engine/cuda", {"engine/core", "engine/cpu"}},  // cpu/fast_math.h: scalar maths of both devices
    {"engine/check", {"engine/core", "engine/autograd", "engine/ops", "engine/cpu"}},
    {"models", whole_engine},
    {"models/check", whole_engine + Names{"engine/check", "models"}},
    {"data/formats", {"engine/core", "engine/io"}},
    {"data/sets", {"engine/core", "engine/io", "data/formats"}},
    {"data/augment", {"engine/core", "engine/io", "data/formats", "data/sets"}},
    {"data/fetch", {"engine/core", "engine/io", "data/formats", "data/sets"}},
    {"data", {"engine/core", "engine/io", "data/formats", "data/sets", "data/augment", "data/fetch"}},
    {"apps/training", below_apps},
    {"apps/reporting", below_apps + Names{"apps/training"}},
    {"apps/inspector", below_apps + Names{"apps/training", "apps/reporting"}},
    {"apps/exporting", below_apps + Names{"apps/training", "apps/inspector"}},
    {"apps/options", below_apps + Names{"apps/training", "apps/reporting", "apps/inspector"}},
    {"apps/ranks", below_apps + Names{"apps/training", "apps/options"}},
    {"apps/commands", below_apps + Names{"apps/training", "apps/reporting", "apps/inspector",
                                         "apps/exporting", "apps/options", "apps/ranks"}},
    {"apps/benchmarks", below_apps},
    {"apps", {"apps/commands", "apps/options", "apps/ranks"}},
};

struct Include {
  std::ptrdiff_t line;
  std::string path;
  bool quoted;
};

// "engine/ops" of "engine/ops/norm.cpp", "models" of "models/parts/mlp.h", "" of "<vector>".
std::string layer_of(std::string_view path) {
  const size_t first = path.find('/');
  if (first == path.npos) return "";
  const std::string_view top = path.substr(0, first);
  if (top == "tests") return std::string(top);
  if (path.starts_with("data/dataset.")) return "data/sets";      // the type that the sets make
  if (path.starts_with("data/image_cache.")) return "data/sets";  // and what its files keep
  if (top != "engine" && top != "models" && top != "data" && top != "apps") return "";
  const std::string room(path.substr(0, path.find('/', first + 1)));
  if (top == "models") return room == "models/check" ? room : "models";
  return room == path ? std::string(top) : room;  // apps/main.cpp is in apps itself
}

bool ends_with_any(std::string_view path, std::initializer_list<std::string_view> ends) {
  return std::ranges::any_of(ends, [&](std::string_view end) { return path.ends_with(end); });
}

bool starts_with_any(std::string_view path, std::initializer_list<std::string_view> starts) {
  return std::ranges::any_of(starts, [&](std::string_view start) { return path.starts_with(start); });
}

bool holds_kernels(std::string_view path) {
  return ends_with_any(path, {"_kernels.h", "_cpu.cpp", "_cuda.cu"});
}

bool is_cuda_file(std::string_view path) {
  return ends_with_any(path, {"_cuda.cu", "_cuda.h"}) || path.starts_with("engine/cuda/");
}

std::vector<Include> includes_of(const Source& source) {
  static const std::regex pattern(R"(^\s*#\s*include\s*(["<])([^">]+)[">])");
  std::vector<Include> found;
  std::istringstream lines(source.text);
  std::string line;
  for (std::ptrdiff_t number = 1; std::getline(lines, line); ++number)
    if (std::smatch match; std::regex_search(line, match, pattern))
      found.push_back({number, match[2], match[1] == "\""});
  return found;
}

// Why `file` may not include `include`, or nothing.
std::optional<std::string> objection(const std::string& file, const Include& include) {
  const std::string from = layer_of(file), to = layer_of(include.path);
  if (include.quoted && to.empty()) return "not a path from the repo root";
  if (holds_kernels(file) && include.path == "engine/core/tensor.h")
    return "files with kernels know no Tensor";
  const bool cuda_header =
      to == "engine/cuda" || starts_with_any(include.path, {"cuda", "cublas", "cub/", "nccl"});
  if (cuda_header) {
    if (is_cuda_file(file)) return std::nullopt;
    return "CUDA is for _cuda.cu files and engine/cuda";
  }
  if (to.empty()) {
    const bool lean = from.starts_with("engine/") || from == "models";
    if (lean && starts_with_any(include.path, {"fmt/", "CLI/", "stb", "zlib.h", "jpeglib.h", "turbojpeg.h",
                                               "nettle/", "archive", "curl/", "doctest/", "benchmark/"}))
      return "engine and models need OpenBLAS, oneTBB and nlohmann/json alone";
    if (include.path.starts_with("CLI/") && file != "apps/options/command.cpp" &&
        file != "apps/options/program.cpp")
      return "CLI11 takes seconds to compile: apps/options/command.h has what a command needs";
    return std::nullopt;
  }
  if (to == from || layers.at(from).contains(to)) return std::nullopt;
  return from + " may not see " + to;
}

// The line of the first match in the text, or 0.
std::ptrdiff_t line_of(const std::regex& pattern, const std::string& text) {
  std::smatch match;
  if (!std::regex_search(text, match, pattern)) return 0;
  return 1 + std::count(text.begin(), text.begin() + match.position(), '\n');
}

// The line of the first word "Tensor" outside a comment, or 0.
std::ptrdiff_t line_with_tensor(const std::string& text) {
  static const std::regex comment(R"(//[^\n]*)"), word(R"(\bTensor\b)");
  return line_of(word, std::regex_replace(text, comment, ""));
}

// The line of the first directive that asks the preprocessor for CUDA, or 0.
std::ptrdiff_t line_asking_for_cuda(const std::string& text) {
  static const std::regex directive(R"(#\s*(if|elif)[^\n]*\bTESSERA_CUDA\b)");
  return line_of(directive, text);
}

bool is_source(const fs::path& path) {
  static const Names extensions = {".h", ".cpp", ".cu", ".cuh"};
  return extensions.contains(path.extension().string());
}

// Build and run folders and the compile database are git-ignored; see .gitignore.
bool is_ignored(std::string_view entry) {
  return starts_with_any(entry, {".", "build"}) || entry == "runs" || entry == "compile_commands.json";
}

std::string read_text(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

}  // namespace

std::vector<Source> read_sources(const fs::path& root) {
  std::vector<Source> sources;
  for (const char* top : {"engine", "models", "data", "apps"}) {
    if (!fs::exists(root / top)) continue;
    for (const auto& entry : fs::recursive_directory_iterator(root / top))
      if (entry.is_regular_file() && is_source(entry.path()))
        sources.push_back({fs::relative(entry.path(), root).generic_string(), read_text(entry.path())});
  }
  return sources;
}

std::vector<std::string> layer_breaches(std::span<const Source> sources) {
  std::vector<std::string> breaches;
  for (const Source& source : sources) {
    if (!layers.contains(layer_of(source.path))) {
      breaches.push_back(source.path + ": in no folder of the design");
      continue;
    }
    for (const Include& include : includes_of(source))
      if (const auto why = objection(source.path, include))
        breaches.push_back(source.path + ":" + std::to_string(include.line) + ": includes " + include.path +
                           " (" + *why + ")");
    if (source.path != "engine/core/device.h")
      if (const auto line = line_asking_for_cuda(source.text))
        breaches.push_back(source.path + ":" + std::to_string(line) +
                           ": asks the preprocessor for CUDA (has_cuda of engine/core/device.h tells)");
    if (holds_kernels(source.path))
      if (const auto line = line_with_tensor(source.text))
        breaches.push_back(source.path + ":" + std::to_string(line) +
                           ": names Tensor (files with kernels know none)");
  }
  return breaches;
}

std::vector<std::string> stray_entries(const fs::path& root) {
  static const Names design = {"CMakeLists.txt", "Makefile",    "README.md", "CONTRIBUTING.md",
                               "LICENSE",        "SECURITY.md", "engine",    "models",
                               "data",           "apps",        "tests"};
  std::vector<std::string> strays;
  for (const auto& entry : fs::directory_iterator(root)) {
    const std::string name = entry.path().filename().string();
    if (!is_ignored(name) && !design.contains(name)) strays.push_back(name);
  }
  return strays;
}

std::vector<std::string> large_files(const fs::path& root, std::uintmax_t limit) {
  std::vector<std::string> large;
  for (const auto& top : fs::directory_iterator(root)) {
    if (is_ignored(top.path().filename().string()) || !top.is_directory()) continue;
    for (const auto& entry : fs::recursive_directory_iterator(top.path()))
      if (entry.is_regular_file() && entry.file_size() > limit)
        large.push_back(fs::relative(entry.path(), root).generic_string());
  }
  return large;
}

}  // namespace tessera::house
