#include "apps/inspector/serve/server.h"

#include "engine/core/error.h"

#ifdef TESSERA_HTTP

#include <httplib.h>
#include <sys/socket.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <thread>
#include <utility>

#include "apps/inspector/serve/rules.h"
#include "apps/training/interrupt.h"
#include "engine/io/json.h"

namespace tessera {

namespace {

using httplib::Request;
using httplib::Response;

constexpr const char* loopback = "127.0.0.1";
constexpr size_t workers = 4, waiting = 8;  // connections at once; more wait unaccepted
constexpr int patience = 5, silence = 1;    // seconds: for the next bytes of a request, and for its first

// Threads that take connections from a short queue. Where it is full, enqueue() waits, and with it the thread
// that accepts.
class BoundedQueue : public httplib::TaskQueue {
 public:
  BoundedQueue() {
    for (size_t i = 0; i < workers; ++i) threads_.emplace_back([this] { work(); });
  }

  void enqueue(std::function<void()> job) override {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return jobs_.size() < waiting; });
    jobs_.push_back(std::move(job));
    changed_.notify_all();
  }

  void shutdown() override {
    {
      const std::lock_guard lock(mutex_);
      ends_ = true;
    }
    changed_.notify_all();
    for (std::thread& thread : threads_) thread.join();
  }

 private:
  void work() {
    while (true) {
      std::function<void()> job;
      {
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [&] { return ends_ || !jobs_.empty(); });
        if (jobs_.empty()) return;
        job = std::move(jobs_.front());
        jobs_.pop_front();
      }
      changed_.notify_all();
      job();
    }
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> jobs_;
  bool ends_ = false;
  std::vector<std::thread> threads_;
};

RequestHead head_of(const Request& request) {
  const auto header = [&](const char* name) {
    // Two of a kind, of which readers could take different ones, count as neither.
    return request.get_header_value_count(name) > 1 ? std::string("?") : request.get_header_value(name);
  };
  return {.method = request.method,
          .path = request.path,
          .host = header("Host"),
          .origin = header("Origin"),
          .site = header("Sec-Fetch-Site"),
          .content_type = header("Content-Type"),
          .content_length = header("Content-Length"),
          .encoded = request.has_header("Transfer-Encoding") || request.has_header("Content-Encoding"),
          .range = request.has_header("Range")};
}

void answer_error(Response& response, int status, const std::string& why) {
  response.status = status;
  response.set_content(Json({{"error", why}}).dump(-1, ' ', true, Json::error_handler_t::replace),
                       "application/json");
}

// Sends the text as it is: the library compresses what it is handed whole, which takes it seconds for a page.
void answer_with(Response& response, std::string text, const char* type) {
  const auto shared = std::make_shared<const std::string>(std::move(text));
  response.set_content_provider(shared->size(), type, [shared](size_t from, size_t count, auto& sink) {
    return sink.write(shared->data() + from, count);
  });
}

// The answers to the requests of the page. The engine works on one at a time.
class Service {
 public:
  explicit Service(Stage& stage) : stage_(stage) {}

  void add_to(httplib::Server& server) {
    server.Get("/", [this](const Request&, Response& response) {
      const std::lock_guard lock(mutex_);
      answer_with(response, page_html(page()), "text/html; charset=windows-1252");
    });
    post(server, "/prove", [this](const Request& request, Response& response) {
      const Json ask = parse_json(request.body, "request");
      const auto place = [&](const char* key) {
        check(ask.contains(key) && ask[key].is_number_unsigned(), "request: ", key, " is wanted, from 0 on");
        return ask[key].get<uint64_t>();
      };
      const Json proof = stage_.prove(place("pass"), place("value"), static_cast<int64_t>(place("cell")));
      response.set_content(proof.dump(), "application/json");
    });
    post(server, "/picture", [this](const Request& request, Response& response) {
      const auto* bytes = reinterpret_cast<const uint8_t*>(request.body.data());
      stage_.show(decode_image({bytes, request.body.size()}, "picture"));
      answer_passes(response);
    });
    post(server, "/term", [this](const Request& request, Response& response) {
      const Json ask = parse_json(request.body, "request");
      check(ask.contains("name") && ask["name"].is_string() && ask.contains("on") && ask["on"].is_boolean(),
            "request: {\"name\": TERM, \"on\": true or false} is wanted");
      stage_.set_term(ask["name"].get<std::string>(), ask["on"].get<bool>());
      answer_passes(response);
    });
    post(server, "/step", [this](const Request&, Response& response) {
      stage_.step();
      answer_passes(response);
    });
  }

 private:
  template <class Answer> void post(httplib::Server& server, const char* path, const Answer& answer) {
    server.Post(path, [this, answer](const Request& request, Response& response) {
      const std::lock_guard lock(mutex_);
      try {
        answer(request, response);
      } catch (const Error& error) {
        answer_error(response, 400, error.what());
      }
    });
  }

  Page page() {
    Page page = stage_.page();
    page.served = true;
    return page;
  }

  void answer_passes(Response& response) {
    answer_with(response, page_data(page()), "application/octet-stream");
  }

  Stage& stage_;
  std::mutex mutex_;
};

void set_limits(httplib::Server& server) {
  server.new_task_queue = [] {
    return new BoundedQueue;
  };                                   // NOLINT(cppcoreguidelines-owning-memory): its own
  server.set_keep_alive_max_count(1);  // a body that was refused unread must not pass for the next request
  server.set_keep_alive_timeout(silence);
  server.set_read_timeout(patience);
  server.set_write_timeout(patience);
  server.set_payload_max_length(static_cast<size_t>(max_picture_bytes));
  server.set_socket_options([](int socket) {  // without SO_REUSEPORT, by which two programs share a port
    const int yes = 1;
    setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  });
  server.set_default_headers({
      {"Cache-Control", "no-store"},
      {"Content-Security-Policy",
       "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; worker-src blob:; "
       "img-src data: blob:; connect-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action "
       "'none'"},
      {"Cross-Origin-Resource-Policy", "same-origin"},
      {"Referrer-Policy", "no-referrer"},
      {"X-Content-Type-Options", "nosniff"},
  });
}

}  // namespace

bool can_serve() { return true; }

void serve(Stage& stage, int port, const std::function<void(int port)>& ready) {
  const Interrupt interrupt;
  httplib::Server server;
  Service service(stage);
  set_limits(server);
  service.add_to(server);
  if (port == 0)
    port = server.bind_to_any_port(loopback);
  else if (!server.bind_to_port(loopback, port))
    port = -1;
  check(port > 0, "inspect: --serve: the port is taken or not allowed; --port 0 takes a free one");
  server.set_pre_routing_handler([port](const Request& request, Response& response) {
    const auto refusal = refusal_of(head_of(request), port);
    if (!refusal) return httplib::Server::HandlerResponse::Unhandled;
    answer_error(response, refusal->status, refusal->why);
    return httplib::Server::HandlerResponse::Handled;
  });
  std::atomic<bool> ended = false;
  std::thread listener([&] {
    server.listen_after_bind();
    ended = true;
  });
  const auto pause = [] { std::this_thread::sleep_for(std::chrono::milliseconds(20)); };
  while (!server.is_running() && !ended) pause();  // before it runs, stop() has no effect
  ready(port);
  while (Interrupt::signal() == 0 && !ended) pause();
  server.stop();
  listener.join();
}

}  // namespace tessera

#else

namespace tessera {

bool can_serve() { return false; }

void serve(Stage&, int, const std::function<void(int port)>&) {
  fail("inspect: --serve needs an HTTP library, which this program was built without (libcpp-httplib-dev)");
}

}  // namespace tessera

#endif
