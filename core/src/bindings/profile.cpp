// The recording of dovetail.profile.
#include <pybind11/stl.h>

#include <algorithm>
#include <chrono>
#include <optional>

#include "bindings/python_device.hpp"
#include "device/queues.hpp"
#include "device/timeline.hpp"

namespace dovetail::bindings {
namespace {
constexpr const char* activities[] = {"op", "copy_call", "kernel", "copy", "memory", "traced"};
constexpr const char* clocks[] = {"run", "events", "host"};

// The device's default stream is 0.
py::object stream_number(const Record& r) {
  if (!r.stream) return py::none();
  const std::vector<Stream*> all = streams_of(*r.device);
  return py::int_(std::find(all.begin(), all.end(), r.stream) - all.begin());
}

py::tuple to_tuple(const Record& r) {
  py::object device = py::none(), detail = py::none();
  if (r.device) device = str_of(r.device->name);
  if (r.detail) detail = str_of(r.detail);
  return py::make_tuple(activities[int(r.activity)], str_of(r.name), detail, device, stream_number(r), r.begin,
                        r.end, r.enqueued, r.bytes, r.value, r.device_time, r.unfinished);
}

py::object end() {
  const Recording recording = end_recording();
  if (!recording.end) return py::none();
  py::list threads, devices;
  for (const ThreadRecords& thread : recording.threads) {
    py::list records;
    for (const Record& r : thread.records) records.append(to_tuple(r));
    threads.append(py::make_tuple(thread.thread, thread.dropped, records));
  }
  for (const DeviceTimes& d : recording.devices)
    devices.append(py::make_tuple(str_of(d.device->name), str_of(d.device->props.name), clocks[int(d.clock)],
                                  d.uncertainty_ns));
  return py::make_tuple(recording.begin, recording.end, devices, threads);
}

bool wait(std::optional<double> seconds) {
  if (!seconds) return await_recording(), true;
  const GilRelease others_run;
  const auto limit = std::chrono::nanoseconds(int64_t(*seconds * 1e9));
  return await_recording(std::chrono::steady_clock::now() + limit);
}
}  // namespace

void name_recorded_thread() {
  thread_local constinit uint64_t named = 0;
  const uint64_t number = recording_number();
  if (named == number) [[likely]]
    return;
  named = number;
  call_lazy("_profile", "note_thread");
}

void make_profile(py::module_& m) {
  m.def("profile_begin", begin_recording, py::arg("limit"),
        "Records ops, kernels, copies and memory from now on, at most so many records of each thread.");
  m.def("profile_wait", wait, py::arg("seconds") = py::none(),
        "Waits for all devices; Ctrl-C ends the wait. With `seconds`, for so long at most: returns whether all is "
        "done.");
  m.def("profile_end", end,
        "Stops, and returns (begin, end, devices, threads), or None where nothing was being recorded.");
}
}  // namespace dovetail::bindings
