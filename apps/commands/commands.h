#pragma once

#include "apps/options/command.h"

// The subcommands in the order of `tessera --help`, and those of `tessera bench` and `tessera data`. This is
// the one list: it declares their functions, the program calls them, and a test compares it with the files of
// this folder.
// clang-format off
#define TESSERA_COMMANDS(X) \
  X(train) X(ablate) X(report) X(runs) X(diagnose) X(doctor) X(eval) X(predict) X(sample) X(score) X(export) X(models) X(summary) X(keys) X(parity) X(gradcheck) X(inspect) X(bench) X(data)
#define TESSERA_BENCH_COMMANDS(X) X(train) X(infer) X(loader) X(run) X(gemm) X(table) X(scale)
#define TESSERA_DATA_COMMANDS(X) X(info) X(fetch) X(check) X(show)
// clang-format on

namespace tessera {

// add_NAME adds the subcommand NAME, with its options and its help, and is defined in NAME.cpp;
// add_bench_NAME in bench/NAME.cpp and add_data_NAME in data/NAME.cpp add nested ones.
#define TESSERA_DECLARE(name) void add_##name(Command& app);
#define TESSERA_DECLARE_BENCH(name) void add_bench_##name(Command& bench);
#define TESSERA_DECLARE_DATA(name) void add_data_##name(Command& data);
TESSERA_COMMANDS(TESSERA_DECLARE)
TESSERA_BENCH_COMMANDS(TESSERA_DECLARE_BENCH)
TESSERA_DATA_COMMANDS(TESSERA_DECLARE_DATA)
#undef TESSERA_DECLARE
#undef TESSERA_DECLARE_BENCH
#undef TESSERA_DECLARE_DATA

}  // namespace tessera
