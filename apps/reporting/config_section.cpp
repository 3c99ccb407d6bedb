#include "apps/reporting/config_section.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "apps/reporting/html.h"
#include "apps/training/precision.h"

namespace tessera {

namespace {

using Keys = std::vector<std::pair<std::string, std::string>>;  // "optimizer.lr", "0.001"

std::string text_of(const Json& value) {
  if (value.is_string()) return value.get<std::string>();
  return value.dump(-1, ' ', false, Json::error_handler_t::replace);
}

void flatten(const Json& value, const std::string& path, Keys& to) {
  if (!value.is_object()) return to.emplace_back(path, text_of(value)), void();
  for (const auto& [key, inner] : value.items()) flatten(inner, path.empty() ? key : path + "." + key, to);
}

std::string section(const std::string& title, const Keys& keys) {
  std::string out = "<section><h4>" + escaped(title) + "</h4>";
  for (const auto& [key, value] : keys)
    out += fmt::format("<div><span>{}</span><span>{}</span></div>", escaped(key), escaped(value));
  return out + "</section>\n";
}

const std::string* find(const Keys& keys, const std::string& key) {
  const auto found =
      std::find_if(keys.begin(), keys.end(), [&](const auto& each) { return each.first == key; });
  return found == keys.end() ? nullptr : &found->second;
}

}  // namespace

std::string config_section(const RunRecord& run) {
  Keys general{{"precision", std::string(name(precision_of(run)))}};
  std::string sections;
  for (const auto& [key, value] : run.config.items()) {
    Keys own;
    flatten(value, "", own);
    if (!value.is_object())
      general.emplace_back(key, text_of(value));
    else if (!own.empty())
      sections += section(key, own);
  }
  const std::string whole = run.config.dump(2, ' ', false, Json::error_handler_t::replace);
  return heading("Config") +
         cards({card("All that the run was made from", "",
                     "<div class=\"keys\">" + section("run", general) + sections + "</div>" +
                         collapsible("config.json, itself a recipe", "<pre>" + escaped(whole) + "</pre>"),
                     true)});
}

std::string config_differences(std::span<const RunRecord> runs) {
  std::vector<Keys> all(runs.size());
  std::vector<std::string> order, columns{"key"};
  for (size_t r = 0; r < runs.size(); ++r) {
    flatten(runs[r].config, "", all[r]);
    columns.push_back(fmt::format("<i class=\"swatch\" style=\"background:var(--c{})\"></i>{}", r % 8,
                                  escaped(runs[r].name)));
    for (const auto& [key, value] : all[r])
      if (std::find(order.begin(), order.end(), key) == order.end()) order.push_back(key);
  }
  std::vector<std::vector<std::string>> rows;
  for (const std::string& key : order) {
    std::vector<std::string> row{escaped(key)};
    for (const Keys& keys : all) {
      const std::string* value = find(keys, key);
      row.push_back(value ? escaped(*value) : "-");
    }
    if (std::any_of(row.begin() + 2, row.end(), [&](const std::string& each) { return each != row[1]; }))
      rows.push_back(std::move(row));
  }
  return heading("What differs") +
         cards({card("Keys of the configs that are not all the same", "",
                     rows.empty() ? "<p class=\"note\">None: the runs repeat one another.</p>"
                                  : "<div class=\"scroll\">" + html_table(columns, rows) + "</div>",
                     true)});
}

}  // namespace tessera
