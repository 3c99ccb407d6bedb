#include "apps/inspector/page.h"

#include <algorithm>

#include "apps/inspector/container.h"
#include "apps/inspector/export.h"
#include "engine/autograd/tape.h"
#include "engine/ops/elementwise.h"
#include "engine/ops/reduce.h"
#include "tests/commands/program.h"
#include "tests/inspector/model_fixtures.h"
#include "tests/inspector/node.h"

using namespace tessera;

namespace {

// Pages and exports of passes, to be compared by one script.
class Comparison {
 public:
  // The page and the export that the program writes.
  void add_program(const std::string& name, const std::string& arguments) {
    const Said said = tessera_program("inspect " + arguments + " --proofs 0 --out " + page(name) +
                                      " --export " + exported(name));
    REQUIRE_MESSAGE(said.code == 0, said.err);
    take(name);
  }

  void add(const std::string& name, const PassInputs& inputs) {
    const InspectedPass pass = inspect_pass(inputs);
    write_page_of(inputs, pass, page(name));
    export_pass(pass.record, exported(name), Json::object());
    take(name);
  }

  // Every page, read back by its own script, has the exported numbers to the last bit.
  void check() const {
    const Said compared = run_script("compare_with_export.js", words_);
    CAPTURE(compared.err);
    CAPTURE(compared.out);
    CHECK(compared.code == 0);
    CHECK(std::ranges::count(compared.out, '\n') == pages_);
    CHECK(compared.out.find("numbers are equal") != std::string::npos);
  }

  int64_t pages() const { return pages_; }

 private:
  std::string page(const std::string& name) const { return folder_ / (name + ".html"); }
  std::string exported(const std::string& name) const { return folder_ / name; }
  void take(const std::string& name) {
    words_ += " " + page(name) + " " + exported(name);
    ++pages_;
  }

  TemporaryFolder folder_;
  std::string words_;
  int64_t pages_ = 0;
};

}  // namespace

TEST_CASE("page: any bytes survive in HTML") {
  std::string bytes;
  for (int i = 0; i < 256; ++i) bytes += static_cast<char>(i);
  bytes += std::string("</script><!--\r\n\r<") + escape_byte;
  const std::string text = in_html(bytes);
  CHECK(text.find('\0') == text.npos);
  CHECK(text.find('\r') == text.npos);
  CHECK(text.find("</") == text.npos);
  CHECK(text.find("<!") == text.npos);
  CHECK(in_html("<").find('<') == std::string::npos);  // the closing tag follows
}

TEST_CASE("page: its numbers, read back, are the engine's bits") {
  if (!has_node()) return;
  Comparison comparison;
  comparison.add_program("preset", "sl-vit --seed 5");
  comparison.add_program("double", fixture("sl-vit") + " --dtype f64");
  for (const auto& [name, path] : model_fixtures()) comparison.add(name, inputs_of_fixture(path, DType::f32));
  CHECK(comparison.pages() > 27);
  comparison.check();
}

TEST_CASE("page: sl-vit at 32 pixels, every number exact, takes at most ten million bytes") {
  const TemporaryFolder folder;
  REQUIRE(tessera_program("inspect sl-vit --out " + (folder / "page.html").string()).code == 0);
  CHECK(std::filesystem::file_size(folder / "page.html") <= 10'000'000);
}

TEST_CASE("page: names and texts from data cannot break out of their place") {
  const std::string hostile = "a\"'</script><!--<script>alert(1)//\x01\n\xff\xe2\x88\x82";
  const Tensor x = Tensor::from({1, 2}, {2}).require_grad();
  Tape tape;
  tape.keep_all();
  const Tensor loss = sum(multiply(x, x));
  tape.backward(loss);
  const PassRecord record(tape, {{hostile, x}, {"loss", loss}});
  Page page{.kind = "tape", .title = hostile};
  page.passes.push_back({.record = &record, .title = hostile, .classes = {hostile}});
  const std::string html = page_html(page);
  CHECK(html.find("alert(1)//") != html.npos);
  CHECK(html.find("</script><!--") == html.npos);
  CHECK(html.find("<script>alert") == html.npos);
  CHECK(html.find('\xff') == html.npos);
  if (!has_node()) return;
  const TemporaryFolder folder;
  write_page(page, folder / "page.html");
  const Said read = run_script("print_names.js", (folder / "page.html").string());
  CAPTURE(read.err);
  CHECK(read.code == 0);
  CHECK(nlohmann::json::parse(read.out)[0] ==
        "a\"'</script><!--<script>alert(1)//\x01\n\xef\xbf\xbd\xe2\x88\x82");
}
