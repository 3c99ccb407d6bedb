#include "apps/reporting/ablation.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>

#include "apps/reporting/table.h"
#include "apps/training/csv.h"
#include "engine/core/error.h"

namespace tessera {

namespace {

// Splits a text at its commas, except those inside brackets or quotes.
std::vector<std::string> split_values(const std::string& text) {
  std::vector<std::string> parts(1);
  int depth = 0;
  bool quoted = false;
  for (const char c : text) {
    if (c == '"') quoted = !quoted;
    if (!quoted) depth += (c == '[' || c == '{') - (c == ']' || c == '}');
    if (c == ',' && depth == 0 && !quoted)
      parts.emplace_back();
    else
      parts.back() += c;
  }
  return parts;
}

Switch read_switch(const std::string& text) {
  const size_t equals = text.find('=');
  check(equals != std::string::npos && equals > 0 && equals + 1 < text.size(), "--grid '", text,
        "': wanted key=value,value, as in model.attention.scale=fixed,learned");
  Switch s{text.substr(0, equals), "", {}};
  s.name = s.key.substr(s.key.rfind('.') + 1);
  for (const std::string& part : split_values(text.substr(equals + 1))) {
    check(!part.empty(), "--grid '", text, "': a value is missing between two commas or at an end");
    Json value = Json::parse(part, nullptr, false);
    if (value.is_discarded()) value = part;
    check(std::find(s.values.begin(), s.values.end(), value) == s.values.end(), "--grid '", text,
          "': the value ", part, " comes twice");
    s.values.push_back(std::move(value));
  }
  return s;
}

Json number(const std::optional<double>& value) { return value ? Json(*value) : Json(); }

// Mean and deviation over the outcomes that have a score.
Spread spread_over(const std::vector<Outcome>& outcomes, std::optional<double> Outcome::*score) {
  std::vector<double> numbers;
  for (const Outcome& outcome : outcomes)
    if (outcome.*score) numbers.push_back(*(outcome.*score));
  return spread_of(numbers);
}

std::string note_of(const std::vector<Outcome>& outcomes, int64_t seeds) {
  int64_t done = 0;
  for (const Outcome& outcome : outcomes) {
    if (!outcome.reason.empty()) return (outcome.refused ? "refused: " : "failed: ") + outcome.reason;
    done += outcome.last.has_value();
  }
  return done < seeds ? fmt::format("{} of {} runs to go", seeds - done, seeds) : "";
}

// Escapes text for a cell of a Markdown table.
std::string cell_text(const std::string& text) {
  std::string out;
  for (const char c : text) out += c == '|' ? "\\|" : c == '\n' ? " " : std::string(1, c);
  return out;
}

}  // namespace

std::vector<Switch> read_switches(const std::vector<std::string>& texts) {
  std::vector<Switch> switches;
  for (const std::string& text : texts) {
    Switch next = read_switch(text);
    for (Switch& other : switches) {
      check(other.key != next.key, "--grid ", next.key, " is given twice; one list of values is wanted");
      if (other.name == next.name) other.name = other.key, next.name = next.key;
    }
    switches.push_back(std::move(next));
  }
  return switches;
}

std::vector<Choice> choices_of(const std::vector<Switch>& switches) {
  std::vector<Choice> choices{{}};
  for (const Switch& s : switches) {
    std::vector<Choice> longer;
    for (const Choice& choice : choices)
      for (const Json& value : s.values) {
        longer.push_back(choice);
        longer.back().push_back(value);
      }
    choices = std::move(longer);
  }
  return choices;
}

std::string choice_text(const std::vector<Switch>& switches, const Choice& choice) {
  std::string text;
  for (size_t i = 0; i < switches.size(); ++i)
    text += (i ? " " : "") + switches[i].name + "=" + as_text(choice[i]);
  return text;
}

std::string choice_folder(const std::vector<Switch>& switches, const Choice& choice) {
  std::string name;
  for (size_t i = 0; i < switches.size(); ++i)
    name += (i ? "+" : "") + switches[i].name + "=" + as_text(choice[i]);
  for (char& c : name)
    if (!std::isalnum(static_cast<unsigned char>(c)) && std::string("=._-+").find(c) == std::string::npos)
      c = '_';
  return name.empty() ? "base" : name;
}

Spread spread_of(const std::vector<double>& numbers) {
  Spread spread{.count = std::ssize(numbers), .mean = 0, .deviation = {}};
  const auto n = static_cast<double>(numbers.size());
  for (const double x : numbers) spread.mean += x / n;
  if (numbers.size() < 2) return spread;
  double squares = 0;
  for (const double x : numbers) squares += (x - spread.mean) * (x - spread.mean);
  spread.deviation = std::sqrt(squares / (n - 1));
  return spread;
}

Json ablation_rows(const std::vector<Switch>& switches, const std::vector<std::vector<Outcome>>& outcomes,
                   int64_t seeds) {
  Json rows = Json::array();
  const std::vector<Choice> choices = choices_of(switches);
  for (size_t c = 0; c < choices.size(); ++c) {
    Json row = Json::object();
    for (size_t i = 0; i < switches.size(); ++i) row[switches[i].name] = choices[c][i];
    const Spread best = spread_over(outcomes[c], &Outcome::best),
                 last = spread_over(outcomes[c], &Outcome::last);
    row["runs"] = last.count;
    row["best"] = best.count > 0 ? Json(best.mean) : Json();
    row["best_deviation"] = number(best.deviation);
    row["last"] = last.count > 0 ? Json(last.mean) : Json();
    row["last_deviation"] = number(last.deviation);
    const std::string note = note_of(outcomes[c], seeds);
    row["note"] = note.empty() ? Json() : Json(note);
    rows.push_back(std::move(row));
  }
  return rows;
}

std::string score_with_deviation(const Json& row, const std::string& key, Task task) {
  if (row[key].is_null()) return "-";
  const bool loss = task == Task::diffuse;
  const double unit = loss ? 1 : 100;
  const int digits = loss ? 4 : 2;
  const Json& deviation = row[key + "_deviation"];
  return fmt::format("{:.{}f}", unit * row[key].get<double>(), digits) +
         (deviation.is_null() ? "" : fmt::format(" ± {:.{}f}", unit * deviation.get<double>(), digits));
}

std::string ablation_markdown(const std::vector<Switch>& switches, const Json& rows, Task task) {
  const std::string score = score_name(task) + (task == Task::diffuse ? "" : " (%)");
  std::string head = "|", rule = "|";
  for (const Switch& s : switches) {
    head += " " + cell_text(s.name) + " |";
    rule += "---|";
  }
  std::string text =
      head + " runs | best " + score + " | last " + score + " | note |\n" + rule + "---:|---:|---:|---|\n";
  for (const Json& row : rows) {
    text += "|";
    for (const Switch& s : switches) text += " " + cell_text(as_text(row[s.name])) + " |";
    text += fmt::format(" {} | {} | {} | {} |\n", row["runs"].dump(), score_with_deviation(row, "best", task),
                        score_with_deviation(row, "last", task),
                        row["note"].is_null() ? "" : cell_text(row["note"].get<std::string>()));
  }
  return text;
}

std::string ablation_csv(const std::vector<Switch>& switches, const Json& rows) {
  std::vector<std::string> header;
  for (const Switch& s : switches) header.push_back(s.name);
  for (const char* column : {"runs", "best", "best_deviation", "last", "last_deviation", "note"})
    header.emplace_back(column);
  std::string text = csv_line(header);
  for (const Json& row : rows) {
    std::vector<std::string> fields;
    for (const std::string& column : header)
      fields.push_back(row[column].is_null() ? "" : as_text(row[column]));
    text += csv_line(fields);
  }
  return text;
}

}  // namespace tessera
