#pragma once

namespace tessera {

// What every page has in its head and at its end: the style sheet, and the script that shows the numbers of
// a chart under the pointer.
extern const char* const page_style;
extern const char* const page_script;

}  // namespace tessera
