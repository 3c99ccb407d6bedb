#pragma once

// Reading a data set's folder. Errors name the path and say what was expected there.

#include <filesystem>
#include <string>
#include <vector>

namespace tessera {

// The lines of a text file without line ends (\n or \r\n) and without empty lines at the end. Fails for a
// file of more than 16 MB or 250,000 lines.
std::vector<std::string> read_lines(const std::filesystem::path& path);

// The entries of a folder without hidden ones (".name"), in byte order of their names.
std::vector<std::filesystem::path> list_folder(const std::filesystem::path& folder);

// True for a name that a list may give a file of its folder: no path, which could lead out of it.
bool is_plain_name(const std::string& name);

bool is_folder(const std::filesystem::path& path);
bool is_file(const std::filesystem::path& path);

// Finds the folder of an unpacked archive: `dir` or `dir`/`folder`, whichever contains the file or folder
// `marker`. If neither does, fails with a message that names `dataset` and ends with `hint`.
std::filesystem::path find_root(const std::string& dataset, const std::filesystem::path& dir,
                                const std::string& folder, const std::string& marker,
                                const std::string& hint);

}  // namespace tessera
