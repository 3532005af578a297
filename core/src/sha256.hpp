// SHA-256 (FIPS 180-4), for names of content: files and programs.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace dovetail {
class Sha256 {
 public:
  using Digest = std::array<uint8_t, 32>;
  void update(const void* data, size_t size);
  Digest finish();  // once; nothing is added after it

 private:
  void block(const uint8_t* at);
  std::array<uint32_t, 8> state_ = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                    0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  std::array<uint8_t, 64> rest_ = {};
  uint64_t size_ = 0;
};
Sha256::Digest sha256(std::string_view);
std::string to_hex(const Sha256::Digest&);  // 64 lower-case digits
}  // namespace dovetail
