#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <string>

namespace tessera {

// What a server on the loopback address answered: the status is -1 where it answered nothing.
struct Answer {
  int status = -1;
  std::string head, body;
};

// The result of a call, made again as long as it is interrupted: a call on a socket with a time limit is when
// the thread sanitizer stops all threads to free its memory.
template <class Call> auto uninterrupted(Call call) {
  auto result = call();
  while (result < 0 && errno == EINTR) result = call();
  return result;
}

// A connection to a port of the loopback address; -1 where nobody listens. It waits a minute at most.
inline int connect_to(int port) {
  const int socket = ::socket(AF_INET, SOCK_STREAM, 0);
  const timeval patience{60, 0};
  setsockopt(socket, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  setsockopt(socket, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (connect(socket, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0) return socket;
  if (errno == EINTR) {  // it goes on, and must not be asked for again
    pollfd ready{socket, POLLOUT, 0};
    int error = 0;
    socklen_t size = sizeof error;
    uninterrupted([&] { return poll(&ready, 1, 60000); });
    if (getsockopt(socket, SOL_SOCKET, SO_ERROR, &error, &size) == 0 && error == 0) return socket;
  }
  close(socket);
  return -1;
}

// Sends these bytes, and reads until the server closes the connection.
inline Answer send_to(int port, const std::string& bytes) {
  const int socket = connect_to(port);
  if (socket < 0) return {};
  for (size_t sent = 0; sent < bytes.size();) {
    const ssize_t count =
        uninterrupted([&] { return send(socket, bytes.data() + sent, bytes.size() - sent, MSG_NOSIGNAL); });
    if (count <= 0) break;
    sent += static_cast<size_t>(count);
  }
  std::string text;
  char buffer[65536];
  for (ssize_t count; (count = uninterrupted([&] { return recv(socket, buffer, sizeof buffer, 0); })) > 0;)
    text.append(buffer, static_cast<size_t>(count));
  close(socket);
  const size_t end = text.find("\r\n\r\n");
  if (!text.starts_with("HTTP/1.1 ") || end == text.npos) return {};
  return {std::atoi(text.c_str() + 9), text.substr(0, end), text.substr(end + 4)};
}

}  // namespace tessera
