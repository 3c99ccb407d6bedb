#include "apps/training/session.h"

#include <nlohmann/json.hpp>

#include "engine/core/error.h"
#include "engine/core/parallel.h"

namespace tessera {

Ending run_session(Trainer& trainer, RunFolder& folder, const StopAfter& stop, const Computing& computing,
                   const char* event) {
  const auto position = [&] {
    return Json{{"epoch", trainer.position().epoch}, {"step", trainer.position().step}};
  };
  Json details = position();
  details.update(
      {{"threads", threads()}, {"device", name(computing.device)}, {"precision", name(computing.precision)}});
  folder.event(event, details);
  try {
    const Ending ending = trainer.run(folder, stop);
    folder.event(ending == Ending::finished ? "finished" : "stopped", position());
    return ending;
  } catch (const std::exception& error) {
    try {
      folder.event("failed", {{"why", error.what()}});
    } catch (const Error&) {  // as on a full disk; the first error is the one to report
    }
    throw;
  }
}

}  // namespace tessera
