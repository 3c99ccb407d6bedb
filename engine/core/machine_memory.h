#pragma once

#include <cstdint>
#include <string>

namespace tessera {

/// The memory that this process can ever have, in bytes: the machine's with its swap, or less where a control
/// group or a limit of the shell (ulimit -v) says so. 0 where the system does not tell.
int64_t machine_memory();

/// Fails where `bytes` are more than that: "model: the weights need 3.1 TB of memory, here are 23 GB". `what`
/// begins the message. It is asked before the memory is taken, as Linux would lend it and then kill the
/// process.
void check_memory(double bytes, const std::string& what);

}  // namespace tessera
