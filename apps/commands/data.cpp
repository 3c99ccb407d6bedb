// tessera data: its subcommands are in data/.

#include "apps/commands/commands.h"
#include "apps/options/options.h"

namespace tessera {

void add_data(Command& app) {
  Command& command = add_command(app, "data", "Fetch data sets, check them, look at them.", {});
  command.require_subcommand();
#define TESSERA_ADD(name) add_data_##name(command);
  TESSERA_DATA_COMMANDS(TESSERA_ADD)
#undef TESSERA_ADD
}

}  // namespace tessera
