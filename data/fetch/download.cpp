#include "data/fetch/download.h"

#include "data/fetch/library.h"
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

// What is used of libcurl, which is loaded for the first download.
struct Curl {
  Library library{{"libcurl.so.4", "libcurl-gnutls.so.4"}, "libcurl4"};
  decltype(&curl_global_init) global_init = library.function<decltype(curl_global_init)>("curl_global_init");
  decltype(&curl_easy_init) init = library.function<decltype(curl_easy_init)>("curl_easy_init");
  decltype(&curl_easy_setopt) set = library.function<decltype(curl_easy_setopt)>("curl_easy_setopt");
  decltype(&curl_easy_perform) perform = library.function<decltype(curl_easy_perform)>("curl_easy_perform");
  decltype(&curl_easy_getinfo) info = library.function<decltype(curl_easy_getinfo)>("curl_easy_getinfo");
  decltype(&curl_easy_strerror) text = library.function<decltype(curl_easy_strerror)>("curl_easy_strerror");
  decltype(&curl_easy_cleanup) cleanup = library.function<decltype(curl_easy_cleanup)>("curl_easy_cleanup");
  bool ready = global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK;
};

const Curl& curl() {
  static const Curl loaded;
  return loaded;
}

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

using Handle = std::unique_ptr<CURL, decltype(Curl::cleanup)>;

Handle prepare(const std::string& url, Part& part, char* message) {
  Handle handle(curl().ready ? curl().init() : nullptr, curl().cleanup);
  check(handle != nullptr, url, ": libcurl cannot start");
  CURL* h = handle.get();
  const auto set = curl().set;
  set(h, CURLOPT_URL, url.c_str());
  set(h, CURLOPT_ERRORBUFFER, message);
  set(h, CURLOPT_PROTOCOLS_STR, "http,https");
  // What was asked for under TLS is not taken from elsewhere.
  set(h, CURLOPT_REDIR_PROTOCOLS_STR, url.starts_with("https:") ? "https" : "http,https");
  set(h, CURLOPT_FOLLOWLOCATION, 1L);
  set(h, CURLOPT_MAXREDIRS, 5L);
  set(h, CURLOPT_FAILONERROR, 1L);
  set(h, CURLOPT_NOSIGNAL, 1L);
  set(h, CURLOPT_CONNECTTIMEOUT, patience);
  set(h, CURLOPT_LOW_SPEED_LIMIT, 1L);
  set(h, CURLOPT_LOW_SPEED_TIME, patience);
  set(h, CURLOPT_RESUME_FROM_LARGE, static_cast<curl_off_t>(part.had));
  set(h, CURLOPT_WRITEFUNCTION, &take);
  set(h, CURLOPT_WRITEDATA, &part);
  set(h, CURLOPT_NOPROGRESS, 0L);
  set(h, CURLOPT_XFERINFOFUNCTION, &tell);
  set(h, CURLOPT_XFERINFODATA, &part);
  return handle;
}

[[noreturn]] void cannot_reach(const std::string& url, const fs::path& to, const std::string& reason) {
  throw Unreachable(url + ": cannot be reached (" + reason +
                    "). Is this machine online? Another one can fetch it: put it at " + to.string() +
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
  const CURLcode code = curl().perform(handle.get());
  long status = 0;
  curl().info(handle.get(), CURLINFO_RESPONSE_CODE, &status);
  const std::string reason = message[0] ? message : curl().text(code);
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

void download(const std::string& url, const fs::path& to, int64_t bytes, const FileSums& sums,
              const ByteProgress& on_progress) {
  const fs::path part = to.string() + ".part";
  bool resumed = size_of_file(part) > 0;
  while (true) {
    complete(url, to, part, bytes, on_progress);
    const std::string other = difference(sums_of_file(part), sums);
    if (other.empty()) break;
    remove_part(part);
    check(resumed, url, ": has ", other,
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

void download(const std::string& url, const std::filesystem::path& to, int64_t, const FileSums&,
              const ByteProgress&) {
  fail("this build cannot fetch: install libcurl4-openssl-dev and libarchive-dev and build again, or bring ",
       url, " to ", to.string());
}

}  // namespace tessera

#endif
