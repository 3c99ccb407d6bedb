#pragma once

#include <string>
#include <vector>

#include "engine/core/thread_scope.h"
#include "engine/io/json.h"

namespace tessera {

/// One key of a config as a reader asks for it.
struct FieldNote {
  std::string where, path;           ///< as in errors: "vit", "attention.heads"
  std::string type;                  ///< "an integer of at least 1", "an object"; empty: read elsewhere
  std::vector<std::string> choices;  ///< of a string, by all who asked; empty: any
  bool required = true;
  std::string fallback;  ///< JSON, where it is not required; empty: none, such as of an object
};

/// While one lives, notes each key that this thread's Fields ask for, whether or not it is there. So what a
/// reader knows (names, types, ranges, defaults) can be listed and not only be read in its code.
class FieldRecord : public ThreadScope<FieldRecord> {
 public:
  /// The note of a key, made where there is none.
  FieldNote& note(const std::string& where, const std::string& path);

  /// In the order of their first reading; that of a list's object is "groups[].pattern".
  const std::vector<FieldNote>& notes() const { return notes_; }

 private:
  std::vector<FieldNote> notes_;
};

}  // namespace tessera
