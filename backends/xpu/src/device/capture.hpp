// Work that is recorded into a graph instead of done: the group "dovetail.capture" of abi.h.
#pragma once
#include <memory>
#include <mutex>
#include <optional>
#include <sycl/sycl.hpp>
#include <vector>

#include "device/faults.hpp"
#include "dovetail/backend.hpp"

namespace gpu {
namespace graphs = sycl::ext::oneapi::experimental;

// From begin to end, shared by the streams that record into it: the one on which it began, and those that have
// waited for an event of it since.
class Capture {
 public:
  explicit Capture(dvt_stream& origin);
  Capture(const Capture&) = delete;
  Capture& operator=(const Capture&) = delete;

  bool began_on(const dvt_stream& s) const { return streams_.front() == &s; }
  void add(dvt_stream& s) { streams_.push_back(&s); }
  void end();  // its streams work again
  graphs::command_graph<graphs::graph_state::executable> finalize() const { return graph_.finalize(); }

  const std::shared_ptr<Faults> faults;  // where the graph's kernels write theirs

 private:
  graphs::command_graph<graphs::graph_state::modifiable> graph_;
  std::vector<dvt_stream*> streams_;
};

// Reports DVT_INVALID if the stream records.
dvt_status refuse_in_capture(const dvt_stream&, const char* what);
}  // namespace gpu

struct dvt_graph {
  dvt_device& device;
  const gpu::graphs::command_graph<gpu::graphs::graph_state::executable> graph;
  const std::shared_ptr<gpu::Faults> faults;
  std::mutex mutex{};
  std::optional<sycl::event> newest{};  // the end of the last replay: SYCL runs a graph once at a time
};
