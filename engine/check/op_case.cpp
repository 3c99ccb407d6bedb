#include "engine/check/op_case.h"

#include <iterator>

namespace tessera {

OpCases all_cases() {
  OpCases all;
#define TESSERA_FUNCTION(family) family##_cases,
  for (const auto family : {TESSERA_CASE_FAMILIES(TESSERA_FUNCTION)}) {
#undef TESSERA_FUNCTION
    OpCases cases = family();
    all.insert(all.end(), std::make_move_iterator(cases.begin()), std::make_move_iterator(cases.end()));
  }
  return all;
}

}  // namespace tessera
