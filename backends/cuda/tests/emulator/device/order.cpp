#include "device/order.hpp"

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <numeric>
#include <random>

namespace emulator {
std::optional<Order> Order::parse(std::string_view text) {
  if (text == "forward") return Order{forward, 0};
  if (text == "backward") return Order{backward, 0};
  constexpr std::string_view prefix = "shuffled:";
  if (!text.starts_with(prefix)) return {};
  Order order{shuffled, 0};
  const char* end = text.data() + text.size();
  const auto [at, error] = std::from_chars(text.data() + prefix.size(), end, order.seed);
  if (error != std::errc() || at != end) return {};
  return order;
}

Order Order::of_environment() {
  static const Order order = [] {
    const char* text = std::getenv("DOVETAIL_CUDA_EMULATED_ORDER");
    if (!text) return Order{};
    if (const auto parsed = parse(text)) return *parsed;
    std::fprintf(stderr, "DOVETAIL_CUDA_EMULATED_ORDER=%s: expected forward, backward or shuffled:SEED\n", text);
    std::abort();
  }();
  return order;
}

std::vector<uint32_t> Order::permutation(uint32_t n, uint64_t turn) const {
  std::vector<uint32_t> numbers(n);
  std::iota(numbers.begin(), numbers.end(), 0u);
  if (kind == backward) std::reverse(numbers.begin(), numbers.end());
  if (kind == shuffled) {
    std::minstd_rand random(uint32_t(seed * 2654435761u + turn * 40503u + 1));
    for (uint32_t i = n; i > 1; --i) std::swap(numbers[i - 1], numbers[random() % i]);
  }
  return numbers;
}
}  // namespace emulator
