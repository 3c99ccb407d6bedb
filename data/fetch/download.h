#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>

namespace tessera {

// Bytes that are there, and bytes in all; 0 where that is not known.
using AtWork = std::function<void(int64_t done, int64_t total)>;

// Fetches `url` (http, https) to the file `to`. What came lies in TO.part until it is whole: a connection
// that breaks is taken up again, now or by the next call, by asking for the bytes that are missing. The whole
// must have the MD5 sum `md5`; one that began with an older part and has not is fetched again from its start.
// Fails, with nothing at `to`, where the server cannot be reached or answers with an error, where it breaks
// off three times without a byte more (the part is kept), where more than `bytes` come (0: any number), where
// the sum is another (the part is removed), where the disk is full, and where this build lacks libcurl.
void download(const std::string& url, const std::filesystem::path& to, int64_t bytes, const std::string& md5,
              const AtWork& at_work = {});

}  // namespace tessera
