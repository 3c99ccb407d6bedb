#pragma once

namespace emulated {

// From this call on the process runs the instructions of AMX that our kernels use although its processor has
// none: they trap as illegal ones, and a handler of SIGILL does what tiles.h says with the registers and the
// memory that they name. Each thread has its own tiles. So the machine code is run that a processor with AMX
// would be given, which the emulated intrinsics of amx_kernels.h never see. Any other illegal instruction,
// and one that a processor with AMX would refuse, ends the process.
void trap_tiles();

}  // namespace emulated
