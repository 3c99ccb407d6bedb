#pragma once

#include <cstddef>
#include <memory>
#include <string>

namespace tessera {

// XXH3 of 128 bits over bytes that come piece by piece: it finds damage, not forgery.
class Checksum {
 public:
  static constexpr size_t digits = 32;

  Checksum();
  ~Checksum();
  void add(const void* bytes, size_t count);
  // What came so far, as hexadecimal digits.
  std::string text() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace tessera
