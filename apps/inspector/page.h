#pragma once

// A recorded pass as one HTML file that opens from disk and needs nothing else.

#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "apps/inspector/pass.h"
#include "data/formats/image.h"
#include "engine/autograd/pass_record.h"
#include "engine/io/json.h"

namespace tessera {

// A pass on a page, and the facts that its record does not have. Record and roundings must outlive it.
struct PagePass {
  const PassRecord* record = nullptr;
  const Roundings* roundings = nullptr;   // of a pass that was rounded; null for another
  std::string role = "main";              // "main", "with" (for a comparison) or "term" (one switched off)
  std::string title = {}, source = {};    // "sl-vit, class 3"; the run, preset or file
  std::vector<std::string> classes = {};  // names; may be empty
  int64_t target = -1, predicted = -1;    // classes; -1 where there is none
  Json config = {};                       // the model's
  std::optional<Image> picture = {};      // as it went in, before normalisation
  Json proofs = Json::object();           // {place of the value: [{cell, analytic, difference, error, ok}]}
  std::string asks = {};                  // what the loss is, in words; may be empty
  Json updates = {};                      // {parameter: {weight_rms, update_rms}}
  std::string optimizer = {};             // whose next step these updates are, in words
  Json learning_rate = {};                // {now, highest}: of that step, and of its run; null: unknown
};

struct Page {
  std::string kind = "model", title = {};  // or "lesson" or "tape"
  std::vector<PagePass> passes = {};
  Json left_out = Json::array();  // names of modules that --only left out
  Json terms = Json::array();     // [{name, title, pass: its place in passes, or null}]
  Json lesson = {};               // what a lesson says: the page's script knows its keys
  bool served = false;            // whether an engine answers behind the page
};

// The pass with what its inputs tell: classes, target, prediction, config, picture. Both must outlive it.
PagePass page_pass(const PassInputs& inputs, const InspectedPass& pass);

// The HTML. Every value and gradient is in it to the last bit. Whatever comes from data stands in JSON that
// cannot end its script.
std::string page_html(const Page& page);

// The passes without the rest: the index in one line, then the numbers, both as in the HTML. A page that is
// open reads them by tessera.store.read().
std::string page_data(const Page& page);

// Browsers hold texts of at most 2^29 characters.
inline constexpr size_t most_page_bytes = 500'000'000;

// The same HTML as a file, by write_file_atomically(). Fails for a page of more than most_page_bytes.
void write_page(const Page& page, const std::filesystem::path& path);

}  // namespace tessera
