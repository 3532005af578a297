// The streams and spare events of a device.
#pragma once
#include <mutex>
#include <vector>

#include "device/stream.hpp"

namespace dovetail {
struct Queues {
  std::mutex mutex;                   // short, as Pool's
  std::vector<Stream*> all;           // the default one first
  uint32_t coming = 0;                // streams that are being made and will be in `all`
  std::vector<dvt_event*> events[2];  // to record again: without timing, with it
};
std::vector<Stream*> streams_of(Device&);
// Makes the device's default stream.
void open_queues(Device&);
void close_queues(Device&);
const dvt_streams& stream_functions(const Device&);
}  // namespace dovetail
