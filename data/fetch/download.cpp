#include "data/fetch/download.h"

#include "data/fetch/md5.h"
#include "engine/core/error.h"

#ifdef TESSERA_FETCH

#include <curl/curl.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>

namespace tessera {

namespace fs = std::filesystem;

namespace {

constexpr long patience = 30;  // seconds without a byte, or until a connection is made
constexpr int most_stalls = 3;

enum class Outcome { whole, broken_off, start_again };

int64_t size_of_file(const fs::path& path) {
  std::error_code none;
  const auto size = fs::file_size(path, none);
  return none ? 0 : static_cast<int64_t>(size);
}

void remove_part(const fs::path& path) {
  std::error_code none;
  fs::remove(path, none);
}

// The growing file, for libcurl's callbacks.
struct Part {
  std::unique_ptr<std::FILE, int (*)(std::FILE*)> file;
  int64_t had, size, most;  // bytes before this transfer, now, and at most (0: any)
  int write_error = 0;
  bool too_much = false;
  const ByteProgress& on_progress;
};

size_t take(char* bytes, size_t, size_t count, void* to) {
  Part& part = *static_cast<Part*>(to);
  part.size += static_cast<int64_t>(count);
  part.too_much = part.most > 0 && part.size > part.most;
  if (part.too_much) return 0;
  errno = 0;
  if (std::fwrite(bytes, 1, count, part.file.get()) == count) return count;
  part.write_error = errno;
  return 0;
}

int tell(void* of, curl_off_t total, curl_off_t done, curl_off_t, curl_off_t) {
  const Part& part = *static_cast<const Part*>(of);
  if (part.on_progress) part.on_progress(part.had + done, total > 0 ? part.had + total : part.most);
  return 0;
}

using Handle = std::unique_ptr<CURL, decltype(&curl_easy_cleanup)>;

Handle prepare(const std::string& url, Part& part, char* message) {
  static const bool ready = curl_global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK;
  Handle handle(ready ? curl_easy_init() : nullptr, &curl_easy_cleanup);
  check(handle != nullptr, url, ": libcurl cannot start");
  CURL* h = handle.get();
  curl_easy_setopt(h, CURLOPT_URL, url.c_str());
  curl_easy_setopt(h, CURLOPT_ERRORBUFFER, message);
  curl_easy_setopt(h, CURLOPT_PROTOCOLS_STR, "http,https");
  curl_easy_setopt(h, CURLOPT_REDIR_PROTOCOLS_STR, "http,https");
  curl_easy_setopt(h, CURLOPT_FOLLOWLOCATION, 1L);
  curl_easy_setopt(h, CURLOPT_MAXREDIRS, 5L);
  curl_easy_setopt(h, CURLOPT_FAILONERROR, 1L);
  curl_easy_setopt(h, CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(h, CURLOPT_CONNECTTIMEOUT, patience);
  curl_easy_setopt(h, CURLOPT_LOW_SPEED_LIMIT, 1L);
  curl_easy_setopt(h, CURLOPT_LOW_SPEED_TIME, patience);
  curl_easy_setopt(h, CURLOPT_RESUME_FROM_LARGE, static_cast<curl_off_t>(part.had));
  curl_easy_setopt(h, CURLOPT_WRITEFUNCTION, &take);
  curl_easy_setopt(h, CURLOPT_WRITEDATA, &part);
  curl_easy_setopt(h, CURLOPT_NOPROGRESS, 0L);
  curl_easy_setopt(h, CURLOPT_XFERINFOFUNCTION, &tell);
  curl_easy_setopt(h, CURLOPT_XFERINFODATA, &part);
  return handle;
}

[[noreturn]] void cannot_reach(const std::string& url, const fs::path& to, const std::string& reason) {
  fail(url, ": cannot be reached (", reason,
       "). Is this machine online? Another one can fetch it: put it at ", to.string(),
       " and run this again; --url names a mirror");
}

// Interprets the end of a transfer. Fails if another attempt would not help.
Outcome judge(CURLcode code, long status, const Part& part, const std::string& url, const fs::path& to,
              const std::string& reason) {
  if (part.write_error != 0) fail(to.string(), ".part: cannot be written: ", std::strerror(part.write_error));
  if (part.too_much || code == CURLE_RANGE_ERROR || status == 416) return Outcome::start_again;
  if (status >= 400)
    fail(url, ": the server answers ", status, status == 404 ? " (not found)" : "",
         "; --url names a mirror that has it");
  switch (code) {
    case CURLE_OK:
      return Outcome::whole;
    case CURLE_PARTIAL_FILE:
    case CURLE_RECV_ERROR:
    case CURLE_OPERATION_TIMEDOUT:
    case CURLE_GOT_NOTHING:
    case CURLE_HTTP2_STREAM:
      return Outcome::broken_off;
    default:
      cannot_reach(url, to, reason);
  }
}

// One connection, which requests the bytes after those in the part.
Outcome transfer(const std::string& url, const fs::path& to, const fs::path& path, int64_t most,
                 const ByteProgress& on_progress) {
  const int64_t had = size_of_file(path);
  Part part{{std::fopen(path.c_str(), "ab"), &std::fclose}, had, had, most, 0, false, on_progress};
  check(part.file != nullptr, path.string(), ": cannot be written: ", std::strerror(errno));
  char message[CURL_ERROR_SIZE] = "";
  const Handle handle = prepare(url, part, message);
  const CURLcode code = curl_easy_perform(handle.get());
  long status = 0;
  curl_easy_getinfo(handle.get(), CURLINFO_RESPONSE_CODE, &status);
  const std::string reason = message[0] ? message : curl_easy_strerror(code);
  if (std::fclose(part.file.release()) != 0 && part.write_error == 0) part.write_error = errno;
  if (size_of_file(path) == 0) remove_part(path);
  return judge(code, status, part, url, to, reason);
}

// Completes the part by as many connections as it takes.
void complete(const std::string& url, const fs::path& to, const fs::path& path, int64_t bytes,
              const ByteProgress& on_progress) {
  int stalls = 0, starts = 0;
  while (bytes == 0 || size_of_file(path) != bytes) {
    const int64_t had = size_of_file(path);
    const Outcome outcome = transfer(url, to, path, bytes, on_progress);
    if (outcome == Outcome::whole) return;
    if (outcome == Outcome::start_again) {
      remove_part(path);
      check(++starts < 2, url, ": the server sends something else than the published file of ", bytes,
            " bytes; nothing was kept");
      continue;
    }
    stalls = size_of_file(path) > had ? 0 : stalls + 1;
    check(stalls < most_stalls, url, ": the connection breaks off; ", size_of_file(path),
          " bytes are kept in ", path.string(), ", the same command goes on from there");
  }
}

}  // namespace

void download(const std::string& url, const fs::path& to, int64_t bytes, const std::string& md5,
              const ByteProgress& on_progress) {
  const fs::path part = to.string() + ".part";
  bool resumed = size_of_file(part) > 0;
  while (true) {
    complete(url, to, part, bytes, on_progress);
    const std::string sum = md5_of_file(part);
    if (sum == md5) break;
    remove_part(part);
    check(resumed, url, ": has the MD5 sum ", sum, ", the published file ", md5,
          "; it is another file or was damaged on the way, and nothing of it was kept");
    resumed = false;  // the part was of another file
  }
  std::error_code error;
  fs::rename(part, to, error);
  check(!error, to.string(), ": cannot be put in place: ", error.message());
}

}  // namespace tessera

#else

namespace tessera {

void download(const std::string& url, const std::filesystem::path& to, int64_t, const std::string&,
              const ByteProgress&) {
  fail("this build cannot fetch: install libcurl4-openssl-dev and libarchive-dev and build again, or bring ",
       url, " to ", to.string());
}

}  // namespace tessera

#endif
