#pragma once

// A web server for one test: a handful of files, ranges, and the ways in which servers fail.

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace tessera {

class HttpServer {
 public:
  HttpServer() {
    listener_ = socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    auto* plain = reinterpret_cast<sockaddr*>(&address);
    if (listener_ < 0 || bind(listener_, plain, size) != 0 || listen(listener_, 16) != 0 ||
        getsockname(listener_, plain, &size) != 0)
      throw std::runtime_error("no socket to serve from");
    port_ = ntohs(address.sin_port);
    thread_ = std::thread([this] { serve(); });
  }
  ~HttpServer() {
    shutdown(listener_, SHUT_RDWR);
    thread_.join();
    close(listener_);
  }
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  std::string url() const { return "http://127.0.0.1:" + std::to_string(port_); }

  // What GET /name answers.
  void put(const std::string& name, const std::string& bytes) {
    const std::lock_guard lock(mutex_);
    files_[name] = bytes;
  }

  // Every answer has this status and no body, until it is "" again.
  void answer_with(const std::string& status) {
    const std::lock_guard lock(mutex_);
    status_ = status;
  }

  std::atomic<size_t> cut_after = SIZE_MAX;  // bytes of a body, then the connection ends
  std::atomic<int> cuts = 0;                 // so many times more
  std::atomic<bool> ranges = true;           // else every answer is the whole file

  // "bytes=5-" of every request, or "".
  std::vector<std::string> asked() const {
    const std::lock_guard lock(mutex_);
    return asked_;
  }

 private:
  void serve() {
    for (int client; (client = accept(listener_, nullptr, nullptr)) >= 0; close(client)) answer(client);
  }

  static std::string read_request(int client) {
    std::string request;
    char buffer[4096];
    while (request.find("\r\n\r\n") == std::string::npos) {
      const ssize_t got = recv(client, buffer, sizeof buffer, 0);
      if (got <= 0) break;
      request.append(buffer, static_cast<size_t>(got));
      if (!request.starts_with('G')) break;  // a client that wants TLS, which is not spoken here
    }
    return request;
  }

  void answer(int client) {
    const std::string request = read_request(client);
    if (!request.starts_with("GET /")) return;
    const std::string name = request.substr(5, request.find(' ', 5) - 5);
    std::string range;
    if (const size_t at = request.find("Range: bytes="); at != std::string::npos)
      range = request.substr(at + 7, request.find("\r\n", at) - at - 7);
    const std::lock_guard lock(mutex_);
    asked_.push_back(range);
    if (!status_.empty())
      return send_all(client, "HTTP/1.1 " + status_ + "\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
    const auto file = files_.find(name);
    if (file == files_.end()) return send_all(client, "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n");
    respond(client, file->second, range.empty() || !ranges ? 0 : std::stoul(range.substr(6)));
  }

  void respond(int client, const std::string& bytes, size_t from) {
    const std::string total = std::to_string(bytes.size());
    if (from > 0 && from >= bytes.size())
      return send_all(client, "HTTP/1.1 416 Range Not Satisfiable\r\nContent-Range: bytes */" + total +
                                  "\r\nContent-Length: 0\r\n\r\n");
    const std::string body = bytes.substr(from);
    send_all(client,
             (from > 0 ? "HTTP/1.1 206 Partial Content\r\nContent-Range: bytes " + std::to_string(from) +
                             "-" + std::to_string(bytes.size() - 1) + "/" + total + "\r\n"
                       : std::string("HTTP/1.1 200 OK\r\n")) +
                 "Content-Length: " + std::to_string(body.size()) + "\r\nConnection: close\r\n\r\n");
    const bool cut = cuts > 0 && body.size() > cut_after;
    if (cut) --cuts;
    send_all(client, cut ? body.substr(0, cut_after) : body);
  }

  static void send_all(int client, const std::string& bytes) {
    for (size_t sent = 0; sent < bytes.size();) {
      const ssize_t count = send(client, bytes.data() + sent, bytes.size() - sent, MSG_NOSIGNAL);
      if (count <= 0) return;
      sent += static_cast<size_t>(count);
    }
  }

  int listener_, port_ = 0;
  std::thread thread_;
  mutable std::mutex mutex_;
  std::map<std::string, std::string> files_;
  std::string status_;
  std::vector<std::string> asked_;
};

}  // namespace tessera
