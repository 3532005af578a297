// Copies between devices.
#include "dispatch/recorder.hpp"

using namespace recorder;

namespace {
int copies, through_the_host;

// Two devices of one backend whose memory the host must not read.
Plugin& two(const char* name, uint32_t caps) {
  Plugin& p = plugin(name, basic_rows(), {.caps = caps, .devices = 2});
  p.table.copy = [](dvt_device*, const DLTensor* to, const DLTensor* from, dvt_stream*) {
    ++copies, through_the_host += is_host(*to) || is_host(*from);
    std::memcpy(to->data, from->data, size_t(count(*from)) * (from->dtype.bits / 8));
    return DVT_OK;
  };
  return p;
}
Tensor moved(const Tensor& x, Device& to) {
  copies = through_the_host = 0;
  return to_device(x, to);
}
}  // namespace

TEST(peers_copy_directly) {
  Plugin& p = two("peers", DVT_CAP_P2P);
  const Tensor x = array(p.device(0), {2, 3});
  const Tensor y = moved(x, p.device(1));
  CHECK_EQ(y.device, &p.device(1));
  CHECK_EQ(values(y), "0 1 2 3 4 5");
  CHECK_EQ(copies, 1);
  CHECK_EQ(through_the_host, 0);
}

TEST(others_go_through_the_host) {
  Plugin &p = two("strangers", 0), &q = two("foreign_peers", DVT_CAP_P2P);
  const Tensor x = array(p.device(0), {2, 3});
  CHECK_EQ(values(moved(x, p.device(1))), "0 1 2 3 4 5");
  CHECK_EQ(copies, 2);
  CHECK_EQ(through_the_host, 2);
  const Tensor y = array(q.device(0), {4});
  CHECK_EQ(values(moved(y, p.device(0))), "0 1 2 3");
  CHECK_EQ(through_the_host, 2);
}

CHECK_MAIN
