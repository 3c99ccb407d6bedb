#include "apps/training/step_file.h"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <string_view>

#include "engine/core/error.h"
#include "engine/core/printable.h"
#include "engine/io/file.h"

namespace tessera {

namespace {

constexpr int64_t rows_of_a_run = 1000;
constexpr std::string_view head = "step,epoch,loss,lr,gradient_norm\n";

std::string number_text(double value) { return std::isfinite(value) ? fmt::format("{:.7g}", value) : ""; }

// Reads the number that the text begins with, an empty field as NaN, and takes it and the comma off.
double take_number(std::string_view& text, const std::string& where) {
  const std::string_view field = text.substr(0, text.find(','));
  text.remove_prefix(std::min(field.size() + 1, text.size()));
  if (field.empty()) return std::numeric_limits<double>::quiet_NaN();
  double value = 0;
  const auto [end, error] = std::from_chars(field.data(), field.data() + field.size(), value);
  check(error == std::errc() && end == field.data() + field.size(), where, ": '", field, "' is not a number");
  return value;
}

StepRow read_row(std::string_view line, const std::string& where) {
  const auto fields = 1 + std::count(line.begin(), line.end(), ',');
  check(fields == 5, where, " has ", fields, " fields, wanted 5");
  const double step = take_number(line, where);
  check(step >= 1 && step < 1e15, where, ": begins with no step");
  const double epoch = take_number(line, where), loss = take_number(line, where),
               lr = take_number(line, where);
  return {static_cast<int64_t>(step), epoch, loss, lr, take_number(line, where)};
}

// Calls f(row, its end in the text) for each whole line after the first.
template <class F> void for_rows(std::string_view text, const std::filesystem::path& path, F&& f) {
  if (text.empty()) return;
  check(text.starts_with(head) || head.starts_with(text), path.string(), ": line 1: is not ", head);
  size_t begin = head.size();
  for (int64_t number = 2; begin < text.size(); ++number) {
    const size_t end = text.find('\n', begin);
    if (end == text.npos) return;
    f(read_row(text.substr(begin, end - begin), path.string() + ": line " + std::to_string(number)), end + 1);
    begin = end + 1;
  }
}

}  // namespace

std::string StepFile::text_in(const std::filesystem::path& folder) {
  return std::filesystem::exists(path_in(folder)) ? read_text(path_in(folder)) : "";
}

void StepFile::restore(const std::filesystem::path& folder, const std::string& rows) {
  const std::filesystem::path path = path_in(folder);
  const std::string found = text_in(folder);
  if (found == rows) return;
  if (!found.starts_with(rows))
    fmt::print(stderr, "warning: {}: has been changed; the rows of the saved state take its place\n",
               printable(path.string(), false));
  write_file_atomically(path, rows);
}

StepFile::StepFile(const std::filesystem::path& folder, int64_t done) : file_(path_in(folder)) {
  size_t kept = 0;
  const std::string text = file_.text();
  try {
    for_rows(text, file_.path(), [&](const StepRow& row, size_t end) {
      if (row.step <= done) kept = end;
    });
  } catch (const Error& error) {
    fmt::print(stderr, "warning: {}; the run goes on behind the rows before it\n", printable(error.what()));
  }
  file_.cut(static_cast<int64_t>(kept));
}

bool StepFile::has_row(int64_t step, int64_t total) {
  return step == 1 || step % ((total + rows_of_a_run - 1) / rows_of_a_run) == 0;
}

void StepFile::add(const StepRow& row) const {
  file_.add((file_.bytes() == 0 ? std::string(head) : "") +
            fmt::format("{},{:.7g},{},{:.7g},{}\n", row.step, row.epoch, number_text(row.loss), row.lr,
                        number_text(row.gradient_norm)));
}

std::vector<StepRow> read_step_file(const std::filesystem::path& run) {
  std::vector<StepRow> rows;
  for_rows(StepFile::text_in(run), StepFile::path_in(run),
           [&](const StepRow& row, size_t) { rows.push_back(row); });
  return rows;
}

}  // namespace tessera
