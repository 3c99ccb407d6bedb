#pragma once

#include <CLI/App.hpp>

namespace tessera {

// Each adds its subcommand to the program: its options, its help, and what it does. One file each, of that
// name.
void add_train(CLI::App& app);
void add_ablate(CLI::App& app);
void add_report(CLI::App& app);
void add_eval(CLI::App& app);
void add_predict(CLI::App& app);
void add_sample(CLI::App& app);
void add_models(CLI::App& app);
void add_summary(CLI::App& app);
void add_parity(CLI::App& app);
void add_gradcheck(CLI::App& app);
void add_bench(CLI::App& app);
void add_data(CLI::App& app);

}  // namespace tessera
