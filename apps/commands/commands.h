#pragma once

#include "apps/options/command.h"

namespace tessera {

// Each adds its subcommand to the program: its options, its help, and what it does. One file each, of that
// name.
void add_train(Command& app);
void add_ablate(Command& app);
void add_report(Command& app);
void add_eval(Command& app);
void add_predict(Command& app);
void add_sample(Command& app);
void add_models(Command& app);
void add_summary(Command& app);
void add_parity(Command& app);
void add_gradcheck(Command& app);
void add_bench(Command& app);
void add_data(Command& app);

}  // namespace tessera
