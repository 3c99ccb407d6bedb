// tessera: train, evaluate, explain and measure vision transformers from the command line.

#include "apps/commands/commands.h"
#include "apps/options/options.h"

int main(int argc, char** argv) {
  tessera::Command app("A deep-learning engine for vision transformers that learn from small datasets.",
                       "tessera");
#define TESSERA_ADD(name) tessera::add_##name(app);
  TESSERA_COMMANDS(TESSERA_ADD)
#undef TESSERA_ADD
  return tessera::run_program(app, argc, argv);
}
