#pragma once

#include <cstddef>
#include <cstdint>

// The fuzzed readers: the target is NAME.cpp, its inputs are in corpus/NAME.
#define TESSERA_FUZZ_TARGETS(X) \
  X(ade20k)                     \
  X(annotations)                \
  X(cifar)                      \
  X(class_folders)              \
  X(config)                     \
  X(fixture)                    \
  X(idx)                        \
  X(jpeg)                       \
  X(json)                       \
  X(latents)                    \
  X(mat)                        \
  X(numpy)                      \
  X(png)                        \
  X(run_record)                 \
  X(safetensors)                \
  X(state)                      \
  X(token_labels)

// libFuzzer calls this. In the tests, which have all targets in one program, it is renamed to fuzz_NAME.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);
