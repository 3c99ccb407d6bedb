#pragma once

// A kernel whose every access would be instrumented takes twenty times as long. One that is TESSERA_UNSEEN is
// left alone by the sanitizers, and its caller tells them beforehand of the blocks that it will read and
// write.

#include <cstddef>
#include <cstdint>
#include <type_traits>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#define TESSERA_UNSEEN __attribute__((no_sanitize("address,undefined")))
#elif defined(__SANITIZE_THREAD__)
#define TESSERA_UNSEEN __attribute__((no_sanitize("thread")))
extern "C" {
void __tsan_read_range(void* from, unsigned long bytes);
void __tsan_write_range(void* from, unsigned long bytes);
}
#else
#define TESSERA_UNSEEN
#endif

namespace tessera {

// Tells of `rows` rows of `columns` elements of T, element (i, k) at data[i * row + k * column], that are
// read, or written where T is not const. A row or column that lies apart is told of by itself. Nothing
// without a sanitizer.
template <class T>
inline void tell_sanitizer([[maybe_unused]] T* data, [[maybe_unused]] int64_t rows,
                           [[maybe_unused]] int64_t columns, [[maybe_unused]] int64_t row,
                           [[maybe_unused]] int64_t column) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  if (column != 1 && row == 1) return tell_sanitizer(data, columns, rows, column, row);
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t k = 0; k < columns; k += column == 1 ? columns : 1) {
      void* from = const_cast<void*>(static_cast<const void*>(data + i * row + k * column));
      const size_t bytes = sizeof(T) * static_cast<size_t>(column == 1 ? columns : 1);
#if defined(__SANITIZE_ADDRESS__)
      if (void* outside = __asan_region_is_poisoned(from, bytes))
        *static_cast<volatile char*>(outside);  // is reported
#else
      (std::is_const_v<T> ? __tsan_read_range : __tsan_write_range)(from, bytes);
#endif
    }
#endif
}

}  // namespace tessera
