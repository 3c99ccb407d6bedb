// tessera: train, evaluate, explain and measure vision transformers from the command line.

#include "apps/commands/commands.h"
#include "apps/options/options.h"

int main(int argc, char** argv) {
  tessera::Command app("A deep-learning engine for vision transformers that learn from small datasets.",
                       "tessera");
  for (const auto add : {
           tessera::add_train,
           tessera::add_ablate,
           tessera::add_report,
           tessera::add_eval,
           tessera::add_predict,
           tessera::add_sample,
           tessera::add_models,
           tessera::add_summary,
           tessera::add_parity,
           tessera::add_gradcheck,
           tessera::add_bench,
           tessera::add_data,
       })
    add(app);
  return tessera::run_program(app, argc, argv);
}
