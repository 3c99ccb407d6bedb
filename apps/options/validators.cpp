#include "apps/options/validators.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <exception>
#include <functional>
#include <utility>

#include "engine/core/error.h"

namespace tessera {

namespace {

// A finite number for which `good` holds.
Validator number_that(const std::function<bool(double)>& good, const std::string& wanted) {
  return [=](const std::string& text) -> std::string {
    size_t used = 0;
    double number = std::nan("");
    try {
      number = std::stod(text, &used);
    } catch (const std::exception&) {  // not a number, or beyond double
    }
    if (used == text.size() && std::isfinite(number) && good(number)) return "";
    return text + " is not " + wanted;
  };
}

}  // namespace

Validator positive() {
  return number_that([](double x) { return x > 0; }, "a number above 0");
}

Validator non_negative() {
  return number_that([](double x) { return x >= 0; }, "a number of 0 or more");
}

Validator between(double least, double most) {
  return number_that([=](double x) { return x >= least && x <= most; },
                     fmt::format("a number from {} to {}", least, most));
}

Validator web_address() {
  return [](const std::string& text) -> std::string {
    for (const std::string scheme : {"http://", "https://"})
      if (text.starts_with(scheme) && text.size() > scheme.size() && text[scheme.size()] != '/') return "";
    return "'" + text + "' is not an address, http://... or https://...";
  };
}

Validator one_of(std::vector<std::string> names) {
  return [names = std::move(names)](const std::string& text) -> std::string {
    if (std::find(names.begin(), names.end(), text) != names.end()) return "";
    return fmt::format("{} is not one of {}{}", text, fmt::join(names, ", "), did_you_mean(text, names));
  };
}

}  // namespace tessera
