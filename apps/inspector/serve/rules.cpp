#include "apps/inspector/serve/rules.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <string_view>

namespace tessera {

namespace {

struct Path {
  std::string_view path, method;
  std::array<std::string_view, 3> types = {};  // of the body; none: there is no body
  int64_t most_bytes = 0;
};

constexpr std::array<std::string_view, 3> pictures = {"image/png", "image/jpeg", "image/bmp"},
                                          json = {"application/json"};
constexpr Path paths[] = {
    {"/", "GET"},
    {"/prove", "POST", json, max_json_bytes},
    {"/picture", "POST", pictures, max_picture_bytes},
    {"/term", "POST", json, max_json_bytes},
    {"/step", "POST", json, max_json_bytes},
};

bool is_own(std::string_view authority, int port) {
  const std::string own = ":" + std::to_string(port);
  return authority == "127.0.0.1" + own || authority == "localhost" + own;
}

// -1 for anything but digits.
int64_t count_of(const std::string& text) {
  int64_t count = -1;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, count);
  return error == std::errc() && stop == end && text[0] != '-' ? count : -1;
}

std::optional<Refusal> refusal_of_body(const RequestHead& head, const Path& path) {
  if (head.encoded) return Refusal{415, "a body as it is is wanted, neither compressed nor in chunks"};
  const std::string_view type = std::string_view(head.content_type).substr(0, head.content_type.find(';'));
  if (type.empty() || std::find(path.types.begin(), path.types.end(), type) == path.types.end())
    return Refusal{415, "Content-Type " + std::string(path.types[0]) + " is wanted"};
  const int64_t bytes = count_of(head.content_length);
  if (bytes < 0) return Refusal{411, "a Content-Length is wanted"};
  if (bytes > path.most_bytes)
    return Refusal{413, "a body of at most " + std::to_string(path.most_bytes) + " bytes is wanted"};
  return std::nullopt;
}

}  // namespace

std::optional<Refusal> refusal_of(const RequestHead& head, int port) {
  constexpr std::string_view scheme = "http://";
  if (!is_own(head.host, port)) return Refusal{421, "this Host is not served"};
  if (!head.origin.empty() && (!head.origin.starts_with(scheme) ||
                               !is_own(std::string_view(head.origin).substr(scheme.size()), port)))
    return Refusal{403, "a page from elsewhere may not ask"};
  if (!head.site.empty() && head.site != "same-origin" && head.site != "none")
    return Refusal{403, "a page from elsewhere may not ask"};
  const auto* const path =
      std::find_if(std::begin(paths), std::end(paths), [&](const Path& p) { return p.path == head.path; });
  if (path == std::end(paths)) return Refusal{404, "no such path"};
  if (path->method != head.method) return Refusal{405, "this path takes " + std::string(path->method)};
  if (head.range) return Refusal{416, "parts of a page are not served"};
  if (path->method == "POST") return refusal_of_body(head, *path);
  if (head.encoded || count_of(head.content_length) > 0) return Refusal{413, "GET takes no body"};
  return std::nullopt;
}

}  // namespace tessera
