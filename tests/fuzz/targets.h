#pragma once

#include <cstddef>
#include <cstdint>

// The readers that are fuzzed, a file each: NAME.cpp, with its first inputs in corpus/NAME.
#define TESSERA_FUZZ_TARGETS(X) \
  X(annotations)                \
  X(cifar)                      \
  X(config)                     \
  X(idx)                        \
  X(jpeg)                       \
  X(json)                       \
  X(mat)                        \
  X(png)                        \
  X(safetensors)                \
  X(state)                      \
  X(token_labels)

// What libFuzzer calls. In the tests, where all of them are in one program, it is called fuzz_NAME.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);
