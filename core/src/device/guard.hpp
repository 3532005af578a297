// Checks for authors of devices: DOVETAIL_POISON_CALLS and DOVETAIL_GUARD_MEMORY.
#pragma once
#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

namespace dovetail {
struct Device;
class Stream;
struct Storage;

// `recorded` is no check: timeline.hpp records kernels where checked calls run, so that a call without either looks
// at one byte.
enum DebugCheck : uint8_t { poisoned_calls = 1, guarded_memory = 2, recorded = 4 };
extern std::atomic<uint8_t> debug_checks;  // a set of DebugCheck bits
inline bool enabled(DebugCheck check) { return debug_checks.load(std::memory_order_relaxed) & check; }
void poison_calls(bool on);

// Guarded memory: an array's buffer lies between two zones of a pattern and is filled with junk. Writes outside the
// buffer change the pattern; elements that a kernel should write and does not write keep the junk. The zones are
// read back, through the device's copy, when the buffer is released and no queue uses it, and by overruns().
// Buffers that were allocated before stay unguarded.
void guard_memory(bool on);
Storage* allocate_guarded(Device&, Stream&, uint64_t bytes);
// `op`, a name that lives as long as the process, is about to write the buffer as its `output`, as a packed
// operand, or use it as its workspace.
constexpr int kWorkspace = -1, kPack = -2;
void note_writer(const Storage&, const char* op, int output);

struct Overrun {
  std::string op;  // that wrote the buffer last; "": none did, it was copied to
  int output;      // or kWorkspace, kPack
  uint64_t size;   // of the buffer, in bytes
  bool behind;     // its end, or before its beginning
  uint64_t bytes;  // how far the writes reached beyond it
};
std::string to_string(const Overrun&);
// Waits for the device's queues and inspects every buffer. What was found since the last call, each once.
std::vector<Overrun> overruns(Device&);
}  // namespace dovetail
