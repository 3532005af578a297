// The order of the threads of a block between two barriers: a correct kernel returns the same result in every
// order. Chosen by DOVETAIL_CUDA_EMULATED_ORDER=forward|backward|shuffled:SEED.
#pragma once
#include <array>
#include <bit>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace emulator {
struct Order {
  enum Kind { forward, backward, shuffled } kind = forward;
  uint64_t seed = 0;

  static std::optional<Order> parse(std::string_view);  // nullopt if it is invalid
  static Order of_environment();                        // what the environment asks for when it is first read

  // The numbers 0 ... n - 1 in this order; shuffled differs for each `turn`.
  std::vector<uint32_t> permutation(uint32_t n, uint64_t turn) const;
};

// The ranks of runnable threads.
class RankSet {
 public:
  static constexpr uint32_t limit = 1024;

  void insert(uint32_t rank) { words_[rank / 64] |= uint64_t{1} << rank % 64; }
  void insert_first(uint32_t n) {
    for (uint32_t i = 0; i < words; ++i)
      words_[i] = n >= 64 * (i + 1) ? ~uint64_t{0} : n > 64 * i ? (uint64_t{1} << (n - 64 * i)) - 1 : 0;
  }
  // Takes the first rank after `after`, wrapping around at the end; `limit` if there is none.
  uint32_t take_next(uint32_t after) {
    const uint32_t from = (after + 1) % limit;
    uint32_t word = from / 64;
    uint64_t bits = words_[word] & ~uint64_t{0} << from % 64;
    for (uint32_t i = 0; i <= words; ++i, word = (word + 1) % words, bits = words_[word])
      if (bits) {
        words_[word] &= ~(bits & -bits);
        return word * 64 + std::countr_zero(bits);
      }
    return limit;
  }

 private:
  static constexpr uint32_t words = limit / 64;
  std::array<uint64_t, words> words_ = {};
};
}  // namespace emulator
