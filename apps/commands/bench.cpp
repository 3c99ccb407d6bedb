// tessera bench: its subcommands are in bench/.

#include "apps/commands/commands.h"
#include "apps/options/options.h"

namespace tessera {

void add_bench(Command& app) {
  Command& command = add_command(
      app, "bench", "Measure training, inference and data loading against the machine's GEMM peak.",
      {"tessera bench train --model sl-vit --image-size 32 --classes 10 --batch 128 --profile",
       "tessera bench loader --dataset shapes"});
  command.require_subcommand();
#define TESSERA_ADD(name) add_bench_##name(command);
  TESSERA_BENCH_COMMANDS(TESSERA_ADD)
#undef TESSERA_ADD
}

}  // namespace tessera
