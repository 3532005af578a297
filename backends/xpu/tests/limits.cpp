// gpu::launch with a test's ranges and arguments, on a lost device: valid launches fail there. limits DIMS
// GLOBAL... LOCAL... BYTES: prints the status and the message.
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <vector>

#include "device/device.hpp"
#include "launch.hpp"

namespace {
dvt_status fail(const dvt_host*, dvt_status status, uint64_t, const char*, int, const char* message) {
  std::puts(message);
  return status;
}
}  // namespace

int main(int, char** words) {
  dvt_host host{};
  host.fail = fail;
  dvt::host = &host;
  const std::unique_ptr<void, decltype(&std::free)> memory(std::calloc(1, sizeof(dvt_device)), &std::free);
  auto* const device = static_cast<dvt_device*>(memory.get());
  device->lost = true;

  gpu::Grid range{std::atoi(*++words), {}, {}};
  for (int i = 0; i < range.dims; ++i) range.global[i] = std::strtoull(*++words, nullptr, 10);
  for (int i = 0; i < range.dims; ++i) range.local[i] = std::strtoull(*++words, nullptr, 10);
  struct Bytes {
    char bytes[8];
  } eight{};
  const std::vector<gpu::Argument> arguments(std::strtoull(*++words, nullptr, 10) / sizeof eight,
                                             gpu::Argument(eight));
  dvt_call call{};
  std::printf("%d\n", gpu::launch(device, &call, 0, range, std::span<const gpu::Argument>(arguments)));
}
