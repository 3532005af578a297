// An invalid operation of a kernel ends the kernel with a message, instead of the process.
#pragma once

namespace emulator {
void catch_signals_of_kernels();  // once per process; other handlers keep their signals
}
