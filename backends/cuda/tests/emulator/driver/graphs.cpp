// Replays captured graphs.
#include <algorithm>
#include <utility>

#include "device/order.hpp"
#include "driver/capture.hpp"

struct CUgraphExec_st {
  // In an order that the edges allow.
  std::vector<emulator::Work> work;
  std::shared_ptr<emulator::Marker> last;  // the end of the last replay: a graph does not overlap itself
};

using namespace emulator;

namespace {
// Among all orders that the edges allow, returns the one nearest to the selected order: missing edges change
// results.
std::vector<Work> in_order(const CUgraph_st& graph) {
  const auto n = uint32_t(graph.nodes.size());
  const std::vector<uint32_t> wanted = Order::of_environment().permutation(n, 0);
  std::vector<bool> done(n);
  std::vector<Work> work;
  while (work.size() < n)
    for (uint32_t i : wanted) {
      const auto& node = graph.nodes[i];
      if (done[i] || !std::ranges::all_of(node.after, [&](size_t before) { return done[before]; })) continue;
      done[i] = true;
      work.push_back(node.work);
      break;
    }
  return work;
}
}  // namespace

CUresult cuGraphInstantiate(CUgraphExec* out, CUgraph handle, unsigned long long flags) {
  return answer("cuGraphInstantiate", Needs::context, [&] {
    if (flags) refuse(CUDA_ERROR_INVALID_VALUE, "flags that are not emulated");
    const auto graph = Handles<CUgraph_st>::instance().find(handle);
    auto exec = std::make_shared<CUgraphExec_st>();
    exec->work = in_order(*graph);
    place_for(out) = Handles<CUgraphExec_st>::instance().add(std::move(exec));
  });
}

CUresult cuGraphLaunch(CUgraphExec handle, CUstream stream_handle) {
  return answer("cuGraphLaunch", Needs::context, [&] {
    const auto exec = Handles<CUgraphExec_st>::instance().find(handle);
    const Stream stream = find_stream(stream_handle);
    const std::lock_guard guard(streams_mutex());
    const auto replay = [exec] {
      for (const Work& work : exec->work) work();
    };
    if (stream->capturing) return submit(*stream, replay);
    if (exec->last && !exec->last->passed()) submit(*stream, [before = exec->last] { before->wait(); });
    submit(*stream, replay);
    exec->last = std::make_shared<Marker>();
    stream->queue.push([marker = exec->last] { marker->pass(); });
  });
}

CUresult cuGraphExecDestroy(CUgraphExec handle) {
  return answer("cuGraphExecDestroy", Needs::driver, [&] { Handles<CUgraphExec_st>::instance().remove(handle); });
}

CUresult cuGraphDestroy(CUgraph handle) {
  return answer("cuGraphDestroy", Needs::driver, [&] { Handles<CUgraph_st>::instance().remove(handle); });
}
