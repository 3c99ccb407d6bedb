#pragma once

// Which sanitizer a test is built with: the largest tests have a smaller form there, since everything takes
// some ten times as long, and a sanitizer's own memory and addresses are not the program's.

namespace tessera {

#if defined(__SANITIZE_ADDRESS__)
inline constexpr bool address_sanitized = true;
#elif defined(__has_feature)  // clang's way to ask
inline constexpr bool address_sanitized = __has_feature(address_sanitizer);
#else
inline constexpr bool address_sanitized = false;
#endif

#if defined(__SANITIZE_THREAD__)
inline constexpr bool thread_sanitized = true;
#elif defined(__has_feature)
inline constexpr bool thread_sanitized = __has_feature(thread_sanitizer);
#else
inline constexpr bool thread_sanitized = false;
#endif

inline constexpr bool sanitized = address_sanitized || thread_sanitized;

}  // namespace tessera
