#include "apps/inspector/tape_page.h"

#include <doctest/doctest.h>

#include "engine/io/json.h"
#include "engine/ops/activations.h"
#include "engine/ops/elementwise.h"
#include "engine/ops/reduce.h"
#include "tests/commands/program.h"
#include "tests/error_of.h"

using namespace tessera;

namespace {

// sum(gelu(w) * c), under a tape that keeps everything.
struct Graph {
  explicit Graph(DType dtype)
      : w(Tensor::from({1, -2, 3}, {3}, dtype).require_grad()), c(Tensor::from({2, 1, -1}, {3}, dtype)) {
    tape.keep_all();
    loss = program();
    tape.backward(loss);
  }

  Tensor program() const { return sum(gelu(w) * c); }

  Tensor w, c;
  Tape tape;
  Tensor loss;
};

Json index_of(const std::string& path) {
  const std::string html = bytes_of(path), start = "id=\"pass-index\">";
  const size_t from = html.find(start) + start.size();
  return Json::parse(html.substr(from, html.find("</script>", from) - from));
}

}  // namespace

TEST_CASE("a tape's page: names, title, picture and proofs") {
  const TemporaryFolder folder;
  const std::string path = folder / "graph.html";
  const Graph graph(DType::f64);
  const Image picture(4, 2);  // rows, columns
  write_page(path, graph.tape, graph.loss,
             {.title = "my graph",
              .names = {{"w", graph.w}, {"c", graph.c}},
              .picture = picture,
              .classes = {"cat", "dog"},
              .target = 1,
              .loss_again = [&] { return graph.program(); },
              .proofs = 2});
  const Json index = index_of(path);
  CHECK(index["kind"] == "tape");
  CHECK(index["title"] == "my graph");
  const Json& pass = index["passes"][0];
  CHECK(pass["picture"]["width"] == 2);
  CHECK(pass["classes"][1] == "dog");
  CHECK(pass["target"] == 1);
  CHECK(pass["loss"].get<double>() == graph.loss.item());
  std::vector<std::string> names;
  for (const Json& value : pass["values"]) names.push_back(value["name"]);
  for (const char* name : {"w", "c", "gelu", "multiply", "loss"})
    CHECK_MESSAGE(std::find(names.begin(), names.end(), name) != names.end(), name);
  CHECK(pass["proofs"].size() == 4);
  for (const auto& [place, proofs] : pass["proofs"].items())
    for (const Json& proof : proofs) CHECK_MESSAGE(proof["ok"] == true, names.at(std::stoul(place)));
  const Json& of_w =
      pass["proofs"][std::to_string(std::find(names.begin(), names.end(), "w") - names.begin())];
  CHECK(of_w.size() == 2);
}

TEST_CASE("a tape's page: without a program there are no proofs, in any type") {
  const TemporaryFolder folder;
  const Graph graph(DType::f32);
  write_page(folder / "graph.html", graph.tape, graph.loss);
  CHECK(index_of(folder / "graph.html")["passes"][0]["proofs"].empty());
}

TEST_CASE("a tape's page: what it refuses") {
  const TemporaryFolder folder;
  const std::string path = folder / "graph.html";
  const Graph graph(DType::f64), narrow(DType::f32);
  const auto error = [&](const Graph& of, TapePageOptions options) {
    options.names = {{"w", of.w}, {"c", of.c}};
    return error_of([&] { write_page(path, of.tape, of.loss, options); });
  };
  CHECK(error(narrow, {.loss_again = [&] { return narrow.program(); }}).find("f64") != std::string::npos);
  CHECK(error(graph, {.loss_again = [&] { return sum(relu(graph.w) * graph.c); }}).find("relu") !=
        std::string::npos);
  CHECK(error(graph, {.loss_again = [&] { return sum(gelu(graph.w)); }}).find("step") != std::string::npos);
  CHECK(error(graph, {.loss_again = [&] { return 2 * graph.program(); }}).find("step") != std::string::npos);
  CHECK(error_of([&] { write_page(path, graph.tape, narrow.loss); }).find("loss") != std::string::npos);
  CHECK_FALSE(std::filesystem::exists(path));
  Tape forgetful;
  const Tensor loss = sum(square(graph.w));
  forgetful.backward(loss);
  CHECK(error_of([&] { write_page(path, forgetful, loss); }).find("keep_all") != std::string::npos);
}
