#include "apps/inspector/page.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "apps/inspector/container.h"
#include "apps/inspector/export.h"
#include "apps/inspector/page_files.h"
#include "apps/inspector/recomputed.h"
#include "engine/core/error.h"
#include "engine/io/file.h"

namespace tessera {

namespace {

// JSON in ASCII that may stand in a <script>: '<' occurs within strings alone, where it can be escaped.
std::string script_json(const Json& document) {
  std::string text;
  for (const char c : document.dump(-1, ' ', true, Json::error_handler_t::replace))
    if (c == '<')
      text += "\\u003c";
    else
      text += c;
  return text;
}

// The code point that begins at text[i], and i behind it; a byte that is no UTF-8 stands for itself.
uint32_t next_code_point(const std::string& text, size_t& i) {
  const auto byte = [&](size_t at) { return at < text.size() ? static_cast<uint8_t>(text[at]) : 0u; };
  const uint32_t first = byte(i++);
  const int more = first >= 0xf0 ? 3 : first >= 0xe0 ? 2 : first >= 0xc0 ? 1 : 0;
  uint32_t code = more == 0 ? first : first & (0x3fu >> more);
  for (int k = 0; k < more && (byte(i) & 0xc0u) == 0x80u; ++k) code = code << 6 | (byte(i++) & 0x3fu);
  return code;
}

// A text of the page in ASCII: `escape` writes every other code point.
template <class Escape> std::string in_ascii(const std::string& text, const Escape& escape) {
  std::string ascii;
  for (size_t i = 0; i < text.size();) {
    const uint32_t code = next_code_point(text, i);
    if (code < 128)
      ascii += static_cast<char>(code);
    else
      escape(ascii, code);
  }
  return ascii;
}

template <class... Numbers> void append(std::string& text, const char* format, Numbers... numbers) {
  char buffer[32];
  std::snprintf(buffer, sizeof buffer, format, numbers...);
  text += buffer;
}

void escape_in_script(std::string& text, uint32_t code) {
  if (code >= 0x10000) {  // a pair of surrogates
    append(text, "\\u%04x", 0xd800 + ((code - 0x10000) >> 10));
    code = 0xdc00 + ((code - 0x10000) & 0x3ff);
  }
  append(text, "\\u%04x", code);
}

void escape_in_style(std::string& text, uint32_t code) { append(text, "\\%06x", code); }
void escape_in_markup(std::string& text, uint32_t code) { append(text, "&#%u;", code); }

std::string markup_of(const std::string& text) {
  std::string escaped;
  for (const char c : text) {
    if (c == '&' || c == '<' || c == '>' || c == '"')
      append(escaped, "&#%u;", static_cast<unsigned>(c));
    else
      escaped += c;
  }
  return in_ascii(escaped, escape_in_markup);
}

Json picture_json(const Image& picture, Container& container) {
  return {{"width", picture.width}, {"height", picture.height}, {"data", container.add(picture.pixels)}};
}

Json values_json(const PassRecord& record, const Roundings& roundings, Container& container) {
  const Recomputed recomputed(record, roundings);
  const auto add = [&](const Tensor& x, const Rounding* rounding) {
    return rounding ? container.add_computed(x, *rounding) : container.add(x);
  };
  Json rows = rows_of_values(record);
  for (size_t i = 0; i < record.values().size(); ++i) {
    const PassRecord::Value& value = record.values()[i];
    rows[i].erase("op");
    rows[i]["value"] = add(value.value, recomputed.value(i));
    rows[i]["gradient"] = value.gradient.defined() ? add(value.gradient, recomputed.gradient(i)) : Json();
  }
  return rows;
}

Json steps_json(const PassRecord& record) {
  Json steps = json_of_pass(record)["steps"];
  for (size_t s = 0; s < record.steps().size(); ++s) {
    const PassRecord::Step& step = record.steps()[s];
    for (const char* known : {"reads", "makes", "forward", "backward"}) steps[s].erase(known);
    Json inputs = Json::array();
    for (const size_t input : step.inputs)
      inputs.push_back(input == PassRecord::left_out ? Json(-1) : Json(input));
    steps[s]["inputs"] = inputs;
    steps[s]["output"] = step.output;
  }
  return steps;
}

double loss_of(const PassRecord& record) {
  for (const PassRecord::Value& value : record.values())
    if (value.name == "loss" && value.value.elements() == 1) return value.value.item();
  const Tensor& last = record.values().back().value;
  return last.elements() == 1 ? last.item() : std::nan("");
}

Json pass_json(const PagePass& pass, Container& container) {
  const PassRecord& record = *pass.record;
  check(!record.steps().empty(), "page: a record without steps");
  return {{"role", pass.role},
          {"title", pass.title},
          {"source", pass.source},
          {"dtype", name(record.values()[record.steps()[0].output].value.dtype())},
          {"loss", number_json(loss_of(record))},
          {"classes", pass.classes},
          {"target", pass.target},
          {"predicted", pass.predicted},
          {"config", pass.config},
          {"picture", pass.picture ? picture_json(*pass.picture, container) : Json()},
          {"proofs", pass.proofs},
          {"asks", pass.asks},
          {"updates", pass.updates},
          {"optimizer", pass.optimizer},
          {"learning_rate", pass.learning_rate},
          {"values", values_json(record, pass.roundings ? *pass.roundings : Roundings(), container)},
          {"steps", steps_json(record)}};
}

Json formulas(const Page& page) {
  Json catalog = Json::object();
  for (const PagePass& pass : page.passes)
    for (const PassRecord::Step& step : pass.record->steps())
      catalog[step.op->name] = {{"forward", step.op->forward}, {"backward", step.op->backward}};
  return catalog;
}

// What the page's script reads first; the blocks that it names go into the container.
Json page_index(const Page& page, Container& container) {
  check(!page.passes.empty(), "page: no pass to show");
  Json index{{"format", "tessera page 1"}, {"kind", page.kind},         {"title", page.title},
             {"left_out", page.left_out},  {"terms", page.terms},       {"lesson", page.lesson},
             {"served", page.served},      {"catalog", formulas(page)}, {"passes", Json::array()}};
  for (const PagePass& pass : page.passes) index["passes"].push_back(pass_json(pass, container));
  return index;
}

// Replaces a comment of page.html, which must be there once.
void fill_in(std::string& html, const std::string& comment, const std::string& text) {
  const size_t at = html.find(comment);
  check(at != std::string::npos, "page: page.html has no ", comment);
  html.replace(at, comment.size(), text);
}

std::string script() {
  std::string text;
  for (const std::string& file : page_scripts()) text += in_ascii(file, escape_in_script);
  check(text.find("</script") == text.npos && text.find("<!--") == text.npos,
        "page: a script holds </script or <!--");
  return text;
}

int64_t likeliest(const Tensor& logits) {
  if (!logits.defined() || logits.rank() != 2 || logits.dim(0) != 1) return -1;
  const std::vector<double> values = logits.values();
  return std::max_element(values.begin(), values.end()) - values.begin();
}

}  // namespace

PagePass page_pass(const PassInputs& inputs, const InspectedPass& pass) {
  PagePass result{.record = &pass.record,
                  .roundings = &pass.roundings,
                  .classes = inputs.class_names,
                  .asks = inputs.asks};
  result.predicted = likeliest(pass.logits);
  const auto target = inputs.inputs.find("target");
  if (target != inputs.inputs.end() && target->second.elements() == 1 && !is_float(target->second.dtype()))
    result.target = target->second.integers()[0];
  result.config = inputs.model.config;
  result.picture = inputs.picture;
  return result;
}

std::string page_html(const Page& page) {
  Container container;
  const Json index = page_index(page, container);
  std::string html = in_ascii(page_file("page.html"), escape_in_markup);
  fill_in(html, "<!--title-->", markup_of(page.title));
  fill_in(
      html, "<!--style-->",
      "<style>\n" +
          in_ascii(page_file("style.css") + page_file("draw.css") + page_file("serve.css"), escape_in_style) +
          "</style>");
  fill_in(html, "<!--script-->",
          "<script type=\"application/json\" id=\"pass-index\">" + script_json(index) +
              "</script>\n<script>\n" + script() + "</script>");
  // The data come last, so that the page is drawn before they are read.
  fill_in(html, "<!--data-->",
          "<script type=\"text/plain\" id=\"pass-data\">" + container.text() + "</script>");
  return html;
}

std::string page_data(const Page& page) {
  Container container;
  const std::string index = script_json(page_index(page, container));
  return index + "\n" + container.text();
}

void write_page(const Page& page, const std::filesystem::path& path) {
  const std::string html = page_html(page);
  check(html.size() <= most_page_bytes, path.string(), ": a page of ", html.size() / 1'000'000,
        " MB, more than a browser can hold (", most_page_bytes / 1'000'000,
        "); write a part of the pass, --only blocks.0 say, or all numbers as files, --export DIR");
  write_file_atomically(path, html);
}

}  // namespace tessera
