// What a kernel does that a processor refuses ends the kernel, with a message, instead of the process.
#pragma once

namespace emulator {
void catch_signals_of_kernels();  // once for the process; what others handle stays theirs
}
