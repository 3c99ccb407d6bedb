#pragma once

// Conditions for Option::check().

#include <string>
#include <vector>

#include "apps/options/command.h"

namespace tessera {

Validator positive();                          // a finite number above 0
Validator non_negative();                      // a finite number of at least 0
Validator between(double least, double most);  // a finite number, both ends included
// An address of the web, http:// or https:// with a host behind it.
Validator web_address();

Validator one_of(std::vector<std::string> names);

}  // namespace tessera
