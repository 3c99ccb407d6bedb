#include "engine/cpu/blas.h"

#include <dlfcn.h>

#include <cstdlib>

#include "engine/core/error.h"
#include "engine/cpu/processor.h"

namespace tessera {

namespace {

// The name by which OpenBLAS knows kernels for a kind of processor; null leaves the choice to it.
const char* core_of(Processor kind) {
  return kind >= Processor::avx512 ? "SkylakeX" : kind == Processor::avx2 ? "Haswell" : nullptr;
}

void* open_library() {
  for (const char* name : {"libopenblas.so.0", "libopenblas.so"})
    if (void* library = dlopen(name, RTLD_NOW | RTLD_LOCAL)) return library;
  const char* why = dlerror();
  fail("OpenBLAS cannot be loaded: ", why ? why : "unknown error", " (Debian: apt install libopenblas0)");
}

template <class F> F* function(void* library, const char* name) {
  void* found = dlsym(library, name);
  check(found, "the OpenBLAS that is installed has no function ", name);
  return reinterpret_cast<F*>(found);
}

Blas load() {
  setenv("OPENBLAS_NUM_THREADS", "1", 1);
  if (const char* core = core_of(processor())) setenv("OPENBLAS_CORETYPE", core, 0);
  void* const library = open_library();
  function<decltype(openblas_set_num_threads)>(library, "openblas_set_num_threads")(1);
  const char* core = function<decltype(openblas_get_corename)>(library, "openblas_get_corename")();
  return {function<decltype(cblas_sgemm)>(library, "cblas_sgemm"),
          function<decltype(cblas_dgemm)>(library, "cblas_dgemm"), function<Dsyevd>(library, "dsyevd_"),
          core};
}

}  // namespace

const Blas& blas() {
  static const Blas loaded = load();
  return loaded;
}

}  // namespace tessera
