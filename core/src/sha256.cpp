#include "sha256.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

namespace dovetail {
namespace {
// The first 32 bits of the fractions of the cube roots of the first 64 primes.
constexpr uint32_t kRounds[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

uint32_t big_endian(const uint8_t* p) {
  return uint32_t(p[0]) << 24 | uint32_t(p[1]) << 16 | uint32_t(p[2]) << 8 | uint32_t(p[3]);
}
}  // namespace

void Sha256::block(const uint8_t* at) {
  using std::rotr;
  uint32_t w[64];
  for (int i = 0; i < 16; ++i) w[i] = big_endian(at + 4 * i);
  for (int i = 16; i < 64; ++i) {
    const uint32_t s0 = rotr(w[i - 15], 7) ^ rotr(w[i - 15], 18) ^ (w[i - 15] >> 3);
    const uint32_t s1 = rotr(w[i - 2], 17) ^ rotr(w[i - 2], 19) ^ (w[i - 2] >> 10);
    w[i] = w[i - 16] + s0 + w[i - 7] + s1;
  }
  auto [a, b, c, d, e, f, g, h] = state_;
  for (int i = 0; i < 64; ++i) {
    const uint32_t s1 = rotr(e, 6) ^ rotr(e, 11) ^ rotr(e, 25);
    const uint32_t t1 = h + s1 + ((e & f) ^ (~e & g)) + kRounds[i] + w[i];
    const uint32_t s0 = rotr(a, 2) ^ rotr(a, 13) ^ rotr(a, 22);
    const uint32_t t2 = s0 + ((a & b) ^ (a & c) ^ (b & c));
    h = g, g = f, f = e, e = d + t1, d = c, c = b, b = a, a = t1 + t2;
  }
  const uint32_t sums[] = {a, b, c, d, e, f, g, h};
  for (size_t i = 0; i < 8; ++i) state_[i] += sums[i];
}

void Sha256::update(const void* data, size_t size) {
  auto* at = static_cast<const uint8_t*>(data);
  while (size) {
    const size_t filled = size_ % rest_.size();
    if (!filled && size >= rest_.size()) {
      block(at);
      at += rest_.size(), size -= rest_.size(), size_ += rest_.size();
      continue;
    }
    const size_t n = std::min(size, rest_.size() - filled);
    std::memcpy(rest_.data() + filled, at, n);
    at += n, size -= n, size_ += n;
    if (filled + n == rest_.size()) block(rest_.data());
  }
}

Sha256::Digest Sha256::finish() {
  const uint64_t bits = size_ * 8;
  uint8_t length[8];
  for (int i = 0; i < 8; ++i) length[i] = uint8_t(bits >> (56 - 8 * i));
  const uint8_t end = 0x80, zeros[64] = {};
  update(&end, 1);
  update(zeros, (120 - size_ % 64) % 64);  // up to 56 of a block
  update(length, sizeof length);
  Digest digest;
  for (size_t i = 0; i < digest.size(); ++i) digest[i] = uint8_t(state_[i / 4] >> (24 - 8 * (i % 4)));
  return digest;
}

Sha256::Digest sha256(std::string_view text) {
  Sha256 hash;
  hash.update(text.data(), text.size());
  return hash.finish();
}

std::string to_hex(const Sha256::Digest& digest) {
  std::string hex;
  for (const uint8_t byte : digest) {
    hex += "0123456789abcdef"[byte >> 4];
    hex += "0123456789abcdef"[byte & 15];
  }
  return hex;
}
}  // namespace dovetail
