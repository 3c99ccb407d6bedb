#pragma once

// Rules for the READMEs and for what comments refer to. Each function returns one line for each breach.

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace tessera::house {

// First- and second-level folders of engine, models, data, apps and tests that have no README.md, or one of
// more than `most_lines` lines; and the top README where it has more than `most_top_lines`.
std::vector<std::string> readme_breaches(const std::filesystem::path& root, int64_t most_lines,
                                         int64_t most_top_lines);

// Relative links of .md files that lead to no file or folder. Code blocks are skipped.
std::vector<std::string> broken_links(const std::filesystem::path& root);

// Lines of sources and .md files that refer to files which a clone does not have, such as notes kept beside
// it.
std::vector<std::string> references_to_absent_files(const std::filesystem::path& root);

// Places in engine/ where a preprocessor condition asks for TESSERA_CUDA, "engine/core/device.cpp:12".
std::vector<std::string> cuda_conditions(const std::filesystem::path& root);

}  // namespace tessera::house
