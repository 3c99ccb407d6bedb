#pragma once

#include "data/fetch/download.h"

namespace tessera {

// Unpacks the part of `archive` (tar or zip, with any compression that libarchive reads) below `folder` to
// dir/folder. It unpacks to a folder beside that and then renames it, so that the folder is complete or
// absent, and never writes elsewhere, whatever the archive contains. Fails, with nothing unpacked, for an
// absolute path or one with "..", links, devices, a damaged archive, an archive without `folder`, more than
// `most_bytes` or 4 million entries, a full disk, and if this build lacks libarchive. `on_progress` receives
// bytes of the archive.
void unpack(const std::filesystem::path& archive, const std::filesystem::path& dir, const std::string& folder,
            int64_t most_bytes, const ByteProgress& on_progress = {});

}  // namespace tessera
