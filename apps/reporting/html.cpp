#include "apps/reporting/html.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "apps/reporting/html_style.h"

namespace tessera {

namespace {

// The length in bytes of the UTF-8 character that begins at `at`; 0 where none begins.
size_t utf8_length(std::string_view text, size_t at) {
  const auto lead = static_cast<unsigned char>(text[at]);
  const size_t length = lead < 0x80                   ? 1
                        : lead >= 0xC2 && lead < 0xE0 ? 2
                        : lead >= 0xE0 && lead < 0xF0 ? 3
                        : lead >= 0xF0 && lead < 0xF5 ? 4
                                                      : 0;
  if (length == 0 || at + length > text.size()) return 0;
  for (size_t i = 1; i < length; ++i)
    if ((text[at + i] & 0xC0) != 0x80) return 0;
  return length;
}

}  // namespace

std::string escaped(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size();) {
    const char c = text[i];
    const size_t length = utf8_length(text, i);
    if (length == 0 || (static_cast<unsigned char>(c) < 0x20 && c != '\n' && c != '\t'))
      out += "\xEF\xBF\xBD";
    else if (c == '&')
      out += "&amp;";
    else if (c == '<')
      out += "&lt;";
    else if (c == '>')
      out += "&gt;";
    else if (c == '"')
      out += "&quot;";
    else if (c == '\'')
      out += "&#39;";
    else
      out += text.substr(i, length);
    i += std::max<size_t>(length, 1);
  }
  return out;
}

std::string base64(std::span<const uint8_t> bytes) {
  static constexpr char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  out.reserve((bytes.size() + 2) / 3 * 4);
  for (size_t i = 0; i < bytes.size(); i += 3) {
    const size_t count = std::min<size_t>(3, bytes.size() - i);
    uint32_t group = 0;
    for (size_t k = 0; k < 3; ++k) group = group << 8 | (k < count ? bytes[i + k] : 0u);
    for (size_t k = 0; k < 4; ++k) out += k <= count ? digits[group >> (18 - 6 * k) & 63] : '=';
  }
  return out;
}

std::string picture(const Image& image, int side, const std::string& what) {
  return fmt::format("<img src=\"data:image/png;base64,{}\" alt=\"{}\" style=\"height:{}px\">",
                     base64(encode_png(image)), escaped(what), side);
}

std::string page(const std::string& title, const std::string& body, int refresh) {
  const std::string again =
      refresh == 0 ? "" : fmt::format("<meta http-equiv=\"refresh\" content=\"{}\">\n", refresh);
  return fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n{}"
      "<title>{}</title>\n<style>{}</style>\n</head>\n<body>\n<main>\n{}</main>\n<div id=\"tip\"></div>\n"
      "<script>{}</script>\n</body>\n</html>\n",
      again, escaped(title), page_style, body, page_script);
}

std::string card(const std::string& title, const std::string& note, const std::string& content, bool wide) {
  return fmt::format("<section class=\"card{}\"><h3>{}</h3>{}{}</section>\n", wide ? " wide" : "",
                     escaped(title), note.empty() ? "" : "<p class=\"note\">" + escaped(note) + "</p>",
                     content);
}

std::string cards(const std::vector<std::string>& cards) {
  return "<div class=\"cards\">\n" + fmt::format("{}", fmt::join(cards, "")) + "</div>\n";
}

std::string heading(const std::string& text) { return "<h2>" + escaped(text) + "</h2>\n"; }

std::string collapsible(const std::string& summary, const std::string& content) {
  return "<details><summary>" + escaped(summary) + "</summary>" + content + "</details>\n";
}

std::string figures(const std::vector<Figure>& figures) {
  std::string out = "<div class=\"figures\">\n";
  for (const auto& [value, name, note] : figures)
    out += fmt::format(
        "<div class=\"figure\"><div class=\"value\">{}</div><div class=\"name\">{}</div>"
        "<div class=\"under\">{}</div></div>\n",
        escaped(value), escaped(name), escaped(note));
  return out + "</div>\n";
}

std::string html_table(const std::vector<std::string>& columns,
                       const std::vector<std::vector<std::string>>& rows) {
  const auto number = [&](size_t i) { return columns[i].starts_with('#'); };
  std::string out = "<table><thead><tr>";
  for (size_t i = 0; i < columns.size(); ++i)
    out += fmt::format("<th{}>{}</th>", number(i) ? " class=\"n\"" : "", columns[i].substr(number(i)));
  out += "</tr></thead><tbody>\n";
  for (const auto& row : rows) {
    out += "<tr>";
    for (size_t i = 0; i < row.size(); ++i)
      out += fmt::format("<td{}>{}</td>", number(i) ? " class=\"n\"" : "", row[i]);
    out += "</tr>\n";
  }
  return out + "</tbody></table>\n";
}

std::string bar_cell(double share, const std::string& text) {
  const double percent = std::isfinite(share) ? 100 * std::clamp(share, 0.0, 1.0) : 0;
  return fmt::format("<div class=\"bar\"><span><i style=\"width:{:.1f}%\"></i></span><b>{}</b></div>",
                     percent, escaped(text));
}

}  // namespace tessera
