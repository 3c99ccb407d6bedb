#pragma once

namespace tessera {

// The style sheet of every page, and the script that shows the values of a chart under the pointer.
extern const char* const page_style;
extern const char* const page_script;

}  // namespace tessera
