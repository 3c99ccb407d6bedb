#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>

namespace tessera {

// Receives the bytes so far and in all; the latter is 0 if unknown.
using ByteProgress = std::function<void(int64_t done, int64_t total)>;

// Downloads `url` (http, https) to the file `to`. Until the download is complete its bytes are in TO.part;
// after a broken connection this call or the next one requests only the missing bytes. The complete file must
// have the MD5 sum `md5`. If it does not, and it began with an older part, it is downloaded once more from
// the start. Fails, and leaves nothing at `to`, if the server cannot be reached or answers with an error; if
// the connection breaks three times without progress (the part is kept); if more than `bytes` arrive (0: any
// number); if the sum differs (the part is removed); if the disk is full; and if this build lacks libcurl.
void download(const std::string& url, const std::filesystem::path& to, int64_t bytes, const std::string& md5,
              const ByteProgress& on_progress = {});

}  // namespace tessera
