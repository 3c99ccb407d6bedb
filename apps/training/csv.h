#pragma once

#include <string>
#include <vector>

namespace tessera {

// A line of comma-separated values with its end (RFC 4180): fields with a comma, a quote or a line break are
// quoted. A field that a spreadsheet would take for a formula (=, +, -, @ or a tab first, and no number) gets
// an apostrophe before it.
std::string csv_line(const std::vector<std::string>& fields);

}  // namespace tessera
