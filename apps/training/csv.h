#pragma once

#include <string>
#include <vector>

namespace tessera {

// A line of comma-separated values with its end (RFC 4180): fields with a comma, a quote or a line break are
// quoted.
std::string csv_line(const std::vector<std::string>& fields);

}  // namespace tessera
