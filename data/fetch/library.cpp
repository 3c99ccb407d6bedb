#include "data/fetch/library.h"

#include <dlfcn.h>

#include "engine/core/error.h"

namespace tessera {

Library::Library(std::initializer_list<const char*> names, const std::string& package) {
  for (const char* name : names) {
    name_ = name;
    handle_ = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (handle_) return;
  }
  const char* why = dlerror();
  fail(name_, " cannot be loaded: ", why ? why : "unknown error", " (Debian: apt install ", package, ")");
}

void* Library::find(const char* name) const {
  void* found = dlsym(handle_, name);
  check(found != nullptr, "the ", name_, " that is installed has no function ", name);
  return found;
}

}  // namespace tessera
