#pragma once

#include <optional>
#include <string>

#include "apps/reporting/lettering.h"

namespace tessera {

// The line in the system's sans-serif fonts, or nothing where the program is built without FreeType and
// fontconfig, or no font is there.
std::optional<LetteredLine> by_fonts(const std::u32string& characters, int height);

}  // namespace tessera
