#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>

#include "data/fetch/sums.h"
#include "engine/core/error.h"

namespace tessera {

// Receives the bytes so far and in all; the latter is 0 if unknown.
using ByteProgress = std::function<void(int64_t done, int64_t total)>;

// The server cannot be reached at this address; another one may serve.
class Unreachable : public Error {
 public:
  using Error::Error;
};

// Downloads `url` (http, https) to the file `to`. Until the download is complete its bytes are in TO.part;
// after a broken connection this call or the next one requests only the missing bytes. The complete file must
// have the sums that `sums` gives. If it does not, and it began with an older part, it is downloaded once
// more from the start. Fails, and leaves nothing at `to`, if the server cannot be reached (Unreachable) or
// answers with an error; if the connection breaks three times without progress (the part is kept); if more
// than `bytes` arrive (0: any number); if a sum differs (the part is removed); if the disk is full; and
// without libcurl.
void download(const std::string& url, const std::filesystem::path& to, int64_t bytes, const FileSums& sums,
              const ByteProgress& on_progress = {});

}  // namespace tessera
