#pragma once

// A page with the engine behind it, on the loopback address.

#include <functional>

#include "apps/inspector/serve/stage.h"

namespace tessera {

// Whether the program was built with an HTTP library.
bool can_serve();

// Serves the stage's page on 127.0.0.1 until SIGINT or SIGTERM. Port 0 takes a free one; `ready` is told
// which once requests are answered. Requests that rules.h refuses are refused, and a few are worked on at
// once, one of them by the engine. Fails where the port is taken, and without an HTTP library.
void serve(Stage& stage, int port, const std::function<void(int port)>& ready);

}  // namespace tessera
