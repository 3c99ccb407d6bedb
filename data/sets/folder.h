#pragma once

// What a data set's folder holds, with errors that name the path and say what was expected there.

#include <filesystem>
#include <string>
#include <vector>

namespace tessera {

// The lines of a text file without line ends (\n or \r\n); empty lines at the end are left out.
std::vector<std::string> read_lines(const std::filesystem::path& path);

// The entries of a folder in byte order of their names; hidden ones (".name") are left out.
std::vector<std::filesystem::path> list_folder(const std::filesystem::path& folder);

bool is_folder(const std::filesystem::path& path);
bool is_file(const std::filesystem::path& path);

// `dir` or `dir/folder`, whichever holds the file or folder `marker`: an unpacked archive may be given
// itself or by its parent. Fails in the name of `dataset`, with `hint`, if neither does.
std::filesystem::path find_root(const std::string& dataset, const std::filesystem::path& dir,
                                const std::string& folder, const std::string& marker,
                                const std::string& hint);

}  // namespace tessera
