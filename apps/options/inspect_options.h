#pragma once

#include <string>
#include <vector>

#include "apps/inspector/passes.h"
#include "apps/inspector/subject.h"
#include "apps/options/options.h"

namespace tessera {

// The options of `tessera inspect`.
struct InspectOptions {
  std::string source, tensor, folder, out, lesson;
  std::vector<std::string> with;
  SubjectOptions subject;
  PassRequest request;
  int64_t head = -1, port = 0;
  bool list = false, gradient = false, csv = false, json = false, is_lesson = false, serve = false;

  // A page is made where its file is named, and where nothing else is asked for.
  bool asks_for_page() const { return !out.empty() || (!list && tensor.empty() && folder.empty()); }
};

// Declares them on `command`; both must live until it has run.
void add_inspect_options(Command& command, InspectOptions& options);

// Sets what the given options say about the others. Fails where two contradict each other.
void complete(const Command& command, InspectOptions& options);

}  // namespace tessera
