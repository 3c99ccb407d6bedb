#pragma once

// Which requests a served page answers. Everything else is refused before its body is read.

#include <cstdint>
#include <optional>
#include <string>

namespace tessera {

// What is known of a request before its body. An empty string stands for a header that did not come.
struct RequestHead {
  std::string method = {}, path = {}, host = {}, origin = {}, site = {}, content_type = {},
              content_length = {};
  bool encoded = false;  // by Transfer-Encoding or Content-Encoding
  bool range = false;
};

struct Refusal {
  int status;
  std::string why;
};

inline constexpr int64_t max_picture_bytes = int64_t{16} << 20, max_json_bytes = 4096;

// Nothing where the request is one of the page's own, to a server on this port of the loopback address. A
// Host or an Origin that is not this server's is refused, so that a page from elsewhere can neither read nor
// ask, also where its own name was made to point here (DNS rebinding).
std::optional<Refusal> refusal_of(const RequestHead& head, int port);

}  // namespace tessera
