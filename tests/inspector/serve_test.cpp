#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "apps/inspector/serve/model_stage.h"
#include "apps/inspector/serve/rules.h"
#include "apps/inspector/serve/server.h"
#include "data/formats/image.h"
#include "models/presets.h"
#include "tests/commands/running.h"
#include "tests/error_of.h"
#include "tests/inspector/http.h"

using namespace tessera;

namespace {

// The program serving on a free port; it ends with this.
class Served {
 public:
  explicit Served(std::vector<std::string> arguments) : program_(folder_, with_serve(std::move(arguments))) {
    if (!program_.says("127.0.0.1:")) return;
    const std::string said = bytes_of(folder_ / "out");
    port = std::atoi(said.c_str() + said.find("127.0.0.1:") + 10);
  }
  ~Served() {
    if (running_) end();
  }

  // By default as Ctrl-C does.
  Said end(int signal = SIGINT) {
    running_ = false;
    program_.send(signal);
    return program_.wait();
  }

  Answer get(const std::string& path, const std::string& headers = "") const {
    return send_to(port, "GET " + path + " HTTP/1.1\r\nHost: 127.0.0.1:" + std::to_string(port) + "\r\n" +
                             headers + "\r\n");
  }
  Answer post(const std::string& path, const std::string& body, const std::string& type = "application/json",
              const std::string& headers = "") const {
    return send_to(port, "POST " + path + " HTTP/1.1\r\nHost: localhost:" + std::to_string(port) +
                             "\r\nContent-Type: " + type + "\r\nContent-Length: " +
                             std::to_string(body.size()) + "\r\n" + headers + "\r\n" + body);
  }
  // The index of the passes of such a reply.
  static nlohmann::json index_of(const Answer& answer) {
    return nlohmann::json::parse(answer.body.substr(0, answer.body.find('\n')));
  }

  int port = 0;

 private:
  static std::vector<std::string> with_serve(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), "inspect");
    arguments.emplace_back("--serve");
    return arguments;
  }

  TemporaryFolder folder_;
  Running program_;
  bool running_ = true;
};

bool cannot_serve() {
  if (can_serve()) return false;
  MESSAGE("skipped: inspect --serve: needs libcpp-httplib-dev when the program is built");
  return true;
}

std::string png_of(int side) {
  Image image(side, side);
  for (size_t i = 0; i < image.pixels.size(); ++i) image.pixels[i] = static_cast<uint8_t>(i * 7);
  const std::vector<uint8_t> bytes = encode_png(image);
  return {bytes.begin(), bytes.end()};
}

}  // namespace

TEST_CASE("serve: the rules, one refusal a line") {
  const RequestHead page{.method = "GET", .path = "/", .host = "127.0.0.1:80"};
  const RequestHead ask{.method = "POST",
                        .path = "/prove",
                        .host = "localhost:80",
                        .origin = "http://localhost:80",
                        .site = "same-origin",
                        .content_type = "application/json; charset=utf-8",
                        .content_length = "12"};
  CHECK_FALSE(refusal_of(page, 80));
  CHECK_FALSE(refusal_of(ask, 80));
  const auto status = [](RequestHead head, auto change) {
    change(head);
    const auto refusal = refusal_of(head, 80);
    return refusal ? refusal->status : 200;
  };
  for (const char* host : {"", "evil.example", "127.0.0.1", "127.0.0.1:81", "127.0.0.1:80.evil.example", "?"})
    CHECK_MESSAGE(status(page, [&](RequestHead& head) { head.host = host; }) == 421, host);
  for (const char* origin :
       {"null", "http://evil.example", "https://localhost:80", "http://localhost:8080", "?"})
    CHECK_MESSAGE(status(ask, [&](RequestHead& head) { head.origin = origin; }) == 403, origin);
  for (const char* site : {"cross-site", "same-site", "?"})
    CHECK_MESSAGE(status(ask, [&](RequestHead& head) { head.site = site; }) == 403, site);
  for (const char* path : {"", "/index.html", "/prove/", "//", "/../etc/passwd", "*"})
    CHECK_MESSAGE(status(page, [&](RequestHead& head) { head.path = path; }) == 404, path);
  for (const char* method : {"HEAD", "POST", "PUT", "DELETE", "OPTIONS"})
    CHECK_MESSAGE(status(page, [&](RequestHead& head) { head.method = method; }) == 405, method);
  CHECK(status(ask, [](RequestHead& head) { head.method = "GET"; }) == 405);
  for (const char* type : {"", "text/plain", "application/x-www-form-urlencoded", "image/png"})
    CHECK_MESSAGE(status(ask, [&](RequestHead& head) { head.content_type = type; }) == 415, type);
  CHECK(status(ask, [](RequestHead& head) { head.encoded = true; }) == 415);
  for (const char* length : {"", "-1", "+5", "0x10", "12 ", "99999999999999999999", "?"})
    CHECK_MESSAGE(status(ask, [&](RequestHead& head) { head.content_length = length; }) == 411, length);
  CHECK(status(ask, [](RequestHead& head) { head.content_length = "4097"; }) == 413);
  const auto as_picture = [](RequestHead& head) {
    head.path = "/picture";
    head.content_type = "image/png";
    head.content_length = std::to_string(max_picture_bytes);
  };
  CHECK(status(ask, as_picture) == 200);
  CHECK(status(ask, [&](RequestHead& head) {
          as_picture(head);
          head.content_length = std::to_string(max_picture_bytes + 1);
        }) == 413);
  CHECK(status(page, [](RequestHead& head) { head.range = true; }) == 416);
  CHECK(status(page, [](RequestHead& head) { head.content_length = "1"; }) == 413);
}

TEST_CASE("serve: a lesson's page, any cell's proof, a step, refusals over the wire, and a clean end") {
  if (cannot_serve()) return;
  Served served({"--lesson", "linear", "--dtype", "f64"});
  REQUIRE(served.port > 0);

  const Answer page = served.get("/");
  CHECK(page.status == 200);
  CHECK(page.body.find("\"served\":true") != std::string::npos);
  CHECK(page.head.find("Content-Security-Policy: default-src 'none'") != std::string::npos);
  CHECK(page.head.find("frame-ancestors 'none'") != std::string::npos);
  CHECK(page.head.find("charset=windows-1252") != std::string::npos);

  const auto proof =
      nlohmann::json::parse(served.post("/prove", R"({"pass": 0, "value": 1, "cell": 5})").body);
  CHECK(proof["analytic"] == -6.0);  // dW[1, 2], the last number of the lesson's second value
  CHECK(proof["difference"].get<double>() == doctest::Approx(-6));
  CHECK(proof["ok"] == true);

  const Answer step = served.post("/step", "{}");
  CHECK(step.status == 200);
  CHECK(step.head.find("application/octet-stream") != std::string::npos);
  const double once = Served::index_of(step)["passes"][0]["loss"].get<double>(),
               twice = Served::index_of(served.post("/step", "{}"))["passes"][0]["loss"].get<double>();
  CHECK(once < 2.5);
  CHECK(twice < once);
  const auto after =
      nlohmann::json::parse(served.post("/prove", R"({"pass": 0, "value": 1, "cell": 5})").body);
  CHECK(after["analytic"] != -6.0);
  CHECK(after["ok"] == true);

  for (const char* body :
       {R"({"pass": 0, "value": 99, "cell": 0})", R"({"pass": 0, "value": 1, "cell": 6})",
        R"({"pass": 1, "value": 1, "cell": 0})", R"({"pass": -1, "value": 1, "cell": 0})", R"({"pass": 0})",
        R"({"pass": 0, "value": 1.5, "cell": 0})", R"({"pass": 0, "value": 1, "cell": 18446744073709551615})",
        "{", "[]", "", "null"}) {
    CAPTURE(body);
    const Answer refused = served.post("/prove", body);
    CHECK(refused.status == 400);
    CHECK(nlohmann::json::parse(refused.body)["error"].get<std::string>().size() > 10);
  }
  CHECK(served.post("/term", R"({"name": "mask", "on": false})").status == 400);
  CHECK(served.post("/picture", png_of(8), "image/png").status == 400);
  CHECK(served.get("/", "Origin: http://evil.example\r\n").status == 403);
  CHECK(served.get("/", "Sec-Fetch-Site: cross-site\r\n").status == 403);
  CHECK(served.get("/secret").status == 404);
  CHECK(served.get("/../../etc/passwd").status == 404);
  CHECK(served.get("/%2e%2e/").status == 404);
  CHECK(served.post("/step", "{}", "text/plain").status == 415);
  CHECK(served.post("/step", "{}", "application/json", "Content-Encoding: gzip\r\n").status == 415);
  CHECK(served.post("/step", std::string(5000, ' ')).status == 413);
  const std::string own = "Host: 127.0.0.1:" + std::to_string(served.port) + "\r\n";
  CHECK(send_to(served.port, "GET / HTTP/1.1\r\nHost: evil.example\r\n\r\n").status == 421);
  CHECK(send_to(served.port, "GET / HTTP/1.1\r\n\r\n").status == 421);
  CHECK(send_to(served.port, "GET / HTTP/1.1\r\n" + own + "Host: evil.example\r\n\r\n").status == 421);
  CHECK(send_to(served.port, "TRACE / HTTP/1.1\r\n" + own + "\r\n").status >= 400);
  // Nothing of the body is read: the answer comes before it.
  CHECK(send_to(served.port, "POST /picture HTTP/1.1\r\n" + own +
                                 "Content-Type: image/png\r\nContent-Length: 99999999999\r\n\r\n")
            .status == 413);
  CHECK(served.get("/").status == 200);

  const Said said = served.end();
  CHECK(said.code == 0);
  CHECK(said.err.empty());
  CHECK(served.get("/").status == -1);
}

TEST_CASE("serve: silent connections neither hold up the others nor the end") {
  if (cannot_serve()) return;
  Served served({"--lesson", "chain-rule"});
  REQUIRE(served.port > 0);
  std::vector<int> silent;
  for (int i = 0; i < 3; ++i) silent.push_back(connect_to(served.port));
  CHECK(served.get("/").status == 200);
  const Said said = served.end();
  CHECK(said.code == 0);
  for (const int socket : silent) close(socket);
}

TEST_CASE(
    "serve: forty pages at once are all answered, and a request in pieces or without an end is dropped") {
  if (cannot_serve()) return;
  Served served({"--lesson", "chain-rule", "--port", "0"});
  REQUIRE(served.port > 0);
  std::vector<std::thread> visitors;
  std::atomic<int> answered = 0;
  for (int i = 0; i < 40; ++i)
    visitors.emplace_back([&] { answered += served.get("/").status == 200 ? 1 : 0; });
  for (std::thread& visitor : visitors) visitor.join();
  CHECK(answered == 40);
  const std::string own = "Host: 127.0.0.1:" + std::to_string(served.port) + "\r\n";
  // Headers without an end: the line of a request has a limit, and so has a body that never comes.
  CHECK(send_to(served.port, "GET /" + std::string(100'000, 'a') + " HTTP/1.1\r\n" + own + "\r\n").status !=
        200);
  CHECK(send_to(served.port, "GET / HTTP/1.1\r\n" + own + "X: " + std::string(1'000'000, 'a') + "\r\n\r\n")
            .status != 200);
  CHECK(send_to(served.port, "POST /prove HTTP/1.1\r\n" + own +
                                 "Content-Type: application/json\r\nContent-Length: 40\r\n\r\n{")
            .status != 200);
  CHECK(served.get("/").status == 200);
  CHECK(served.end(SIGTERM).code == 0);
}

TEST_CASE("serve: a model's proofs over the wire, and a step that lowers the loss") {
  if (cannot_serve()) return;
  Served served({fixture("sl-vit")});
  REQUIRE(served.port > 0);
  const auto first = Served::index_of(served.post("/step", "{}"))["passes"][0];
  const auto& values = first["values"];
  for (const char* name :
       {"blocks.1.attn.scores", "blocks.0.mlp.fc1.out", "blocks.0.attn.qkv.weight", "input"}) {
    CAPTURE(name);
    const auto found =
        std::find_if(values.begin(), values.end(), [&](const auto& v) { return v["name"] == name; });
    REQUIRE(found != values.end());
    const auto proof = nlohmann::json::parse(
        served.post("/prove", Json({{"pass", 0}, {"value", found - values.begin()}, {"cell", 7}}).dump())
            .body);
    CHECK(proof["ok"] == true);
  }
  const auto second = Served::index_of(served.post("/step", "{}"))["passes"][0];
  CHECK(second["loss"].get<double>() < first["loss"].get<double>());
  for (const std::string& bytes : {std::string("GIF89a"), png_of(24).substr(0, 60), std::string()})
    CHECK(served.post("/picture", bytes, "image/png").body.find("picture") != std::string::npos);
  CHECK(served.post("/picture", png_of(24), "image/png").body.find("no picture") != std::string::npos);
  CHECK(served.end().code == 0);
}

TEST_CASE("serve: what the command refuses") {
  check_refused("inspect --lesson --serve", "needs --lesson NAME");
  check_refused("inspect --lesson linear --serve --out page.html", "go without it");
  check_refused("inspect --lesson linear --port 8000", "goes with --serve");
  check_refused("inspect --lesson linear --serve --port 70000", "--port");
  if (cannot_serve()) return;
  const Served served({"--lesson", "linear"});
  check_refused("inspect --lesson linear --serve --port " + std::to_string(served.port), "port is taken");
}
