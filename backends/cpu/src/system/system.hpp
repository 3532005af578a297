// What the device asks of the operating system.
#pragma once
#include <cstdint>

namespace dovetail::cpu {
uint64_t physical_memory();
uint64_t free_memory();  // with what caches would free; 0 where it is unknown
// Large pages for large arrays, where the system leaves that to programs: a processor translates fewer addresses,
// and its prefetching, which ends with a page, goes on.
void ask_for_large_pages(char* data, uint64_t size);
// Asks for the right to use the tile registers of x86-64 (AMX), for all threads of the process and for good.
bool permit_tiles();
}  // namespace dovetail::cpu
