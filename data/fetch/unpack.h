#pragma once

#include "data/fetch/download.h"

namespace tessera {

// Unpacks what lies below `folder` in `archive` (tar, zip, compressed in any way that libarchive knows) to
// dir/folder: beside it first, then renamed, so that the folder is there whole or not at all. Whatever the
// archive holds, nothing is written elsewhere. Fails, with nothing unpacked, for an absolute path or one with
// "..", links, devices, a damaged archive, one without `folder`, more than `most_bytes` or 4 million entries,
// a full disk, and where this build lacks libarchive. `at_work` is told bytes of the archive.
void unpack(const std::filesystem::path& archive, const std::filesystem::path& dir, const std::string& folder,
            int64_t most_bytes, const AtWork& at_work = {});

}  // namespace tessera
