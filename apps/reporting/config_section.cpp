#include "apps/reporting/config_section.h"

#include <fmt/format.h>

#include "apps/reporting/html.h"
#include "apps/reporting/run_keys.h"
#include "apps/training/precision.h"

namespace tessera {

namespace {

std::string section(const std::string& title, const ConfigKeys& keys) {
  std::string out = "<section><h4>" + escaped(title) + "</h4>";
  for (const auto& [key, value] : keys)
    out += fmt::format("<div><span>{}</span><span>{}</span></div>", escaped(key), escaped(value));
  return out + "</section>\n";
}

}  // namespace

std::string config_section(const RunRecord& run) {
  ConfigKeys general{{"precision", std::string(name(precision_of(run)))}};
  std::string sections;
  for (const auto& [key, value] : run.config.items()) {
    ConfigKeys own;
    flatten(value, "", own);
    if (!value.is_object())
      flatten(value, key, general);
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
  std::vector<ConfigKeys> all(runs.size());
  std::vector<std::string> columns{"key"};
  for (size_t r = 0; r < runs.size(); ++r) {
    flatten(runs[r].config, "", all[r]);
    columns.push_back(fmt::format("<i class=\"swatch\" style=\"background:var(--c{})\"></i>{}", r % 8,
                                  escaped(runs[r].name)));
  }
  std::vector<std::vector<std::string>> rows;
  for (const std::string& key : differing_keys(all)) {
    std::vector<std::string> row{escaped(key)};
    for (const ConfigKeys& keys : all) {
      const std::string* value = find(keys, key);
      row.push_back(value ? escaped(*value) : "-");
    }
    rows.push_back(std::move(row));
  }
  return heading("What differs") +
         cards({card("Keys of the configs that are not all the same", "",
                     rows.empty() ? "<p class=\"note\">None: the runs repeat one another.</p>"
                                  : "<div class=\"scroll\">" + html_table(columns, rows) + "</div>",
                     true)});
}

}  // namespace tessera
