// Products of bytes in tile registers, which multiply all signs: only zero points are left to correct.
#include <cstring>

#include "scratch.hpp"
#include "simd/amx.hpp"
#include "simd/integer_gemm.hpp"

#if defined(DOVETAIL_CPU_TILES)
namespace dovetail::cpu::DOVETAIL_CPU_ISA::integer_gemm {
namespace {
constexpr int64_t side = amx::side, depth = amx::depth<uint8_t>, line = 64;
constexpr int64_t panel = line;          // columns of b that are packed at a time, and of the buffer
constexpr int64_t most_terms = 64 * 64;  // of a row of a and a column of b that are packed at a time

// The sums of columns of b are the product of such a row, those of rows of a that of such a tile.
struct Ones {
  uint8_t of[most_terms];
};
constexpr Ones ones = [] {
  Ones x{};
  for (uint8_t& one : x.of) one = 1;
  return x;
}();

class Job {
 public:
  explicit Job(const Product& p)
      : p_(p), a_(static_cast<const uint8_t*>(p.a.data)), b_(static_cast<const uint8_t*>(p.b.data)) {}

  bool run() {
    if (!allocate()) return false;
    find_zeros();
    const amx::Registers registers;
    for (int64_t q = 0; q < p_.k; q += most_terms) add_step(q, least(most_terms, p_.k - q));
    if (sums_rows_ || sums_columns_) correct(p_, {a_zero_, b_zero_, a_sum_, b_sum_});
    return true;
  }

 private:
  // Rows of tiles for all of a step's k.
  struct Rows {
    const uint8_t* data;
    int64_t row;
  };

  bool allocate() {
    const int64_t terms = round_up(least(p_.k, most_terms), depth), rows = round_up(p_.m, side);
    const auto get = [](Scratch purpose, int64_t bytes) { return scratch(purpose, size_t(bytes)); };
    packed_a_ = static_cast<uint8_t*>(get(Scratch::operand_a, rows * (terms + line)));
    packed_b_ = static_cast<uint8_t*>(get(Scratch::operand_b, panel * terms));
    buffer_ = static_cast<int32_t*>(get(Scratch::result, panel * panel * int64_t(sizeof(int32_t))));
    a_zero_ = static_cast<int32_t*>(get(Scratch::kernel, 2 * (p_.m + p_.n) * int64_t(sizeof(int32_t))));
    b_zero_ = a_zero_ + p_.m;
    a_sum_ = reinterpret_cast<uint32_t*>(b_zero_ + p_.n), b_sum_ = a_sum_ + p_.m;
    return packed_a_ && packed_b_ && buffer_ && a_zero_;
  }

  void find_zeros() {
    for (int64_t i = 0; i < p_.m; ++i) sums_columns_ |= (a_zero_[i] = p_.a.zero_point(i)) != 0, a_sum_[i] = 0;
    for (int64_t j = 0; j < p_.n; ++j) sums_rows_ |= (b_zero_[j] = p_.b.zero_point(j)) != 0, b_sum_[j] = 0;
  }

  // Adds columns [q, q + k) of a times the same rows of b.
  void add_step(int64_t q, int64_t k) {
    const Rows a = rows_of(a_ + q * p_.a.column, k);
    if (sums_rows_) add_rows(k, a);
    for (int64_t j = 0; j < p_.n; j += panel) {
      const int64_t n = least(panel, p_.n - j);
      const amx::Tiles<uint8_t> b = pack_panel(n, k, b_ + q * p_.b.row + j * p_.b.column);
      if (sums_columns_) add_columns(k, b, n, b_sum_ + j);
      multiply(k, a, b, n, p_.c + j, q != 0);
    }
  }

  void add_rows(int64_t k, const Rows& a) {
    for (int64_t i = 0; i < p_.m; i += panel) {
      const int64_t m = least(panel, p_.m - i);
      amx::multiply(round_up(m, side), side, k, a.data + i * a.row, a.row, {ones.of, 0, 0}, {p_.a.is_signed, true},
                    buffer_, side, false);
      for (int64_t r = 0; r < m; ++r) a_sum_[i + r] += uint32_t(buffer_[r * side]);
    }
  }
  void add_columns(int64_t k, const amx::Tiles<uint8_t>& b, int64_t n, uint32_t* sums) {
    amx::multiply(side, round_up(n, side), k, ones.of, 0, b, {true, p_.b.is_signed}, buffer_, panel, false);
    for (int64_t j = 0; j < n; ++j) sums[j] += uint32_t(buffer_[j]);
  }

  // In place, unless a tile reads beyond a or its rows map to the same lines of the cache.
  Rows rows_of(const uint8_t* a, int64_t k) {
    if (p_.a.column == 1 && k % depth == 0 && p_.m % side == 0 && p_.a.row % 4096) return {a, p_.a.row};
    const int64_t row = round_up(k, depth) + line;
    uint8_t* to = packed_a_;
    for (int64_t i = 0; i < p_.m; ++i, a += p_.a.row, to += row) {
      if (p_.a.column == 1) std::memcpy(to, a, size_t(k));
      else
        for (int64_t p = 0; p < k; ++p) to[p] = a[p * p_.a.column];
      std::memset(to + k, 0, size_t(round_up(k, depth) - k));
    }
    return {packed_a_, row};  // what the rows beyond the last hold is multiplied, if not stored
  }

  amx::Tiles<uint8_t> pack_panel(int64_t n, int64_t k, const uint8_t* b) {
    constexpr int64_t tile = amx::tile<uint8_t>;
    const int64_t column = round_up(k, depth) / depth * tile;
    uint8_t* to = packed_b_;
    for (int64_t p = 0; p < k; p += depth, to += tile)
      for (int64_t j = 0; j < n; j += side)
        amx::pack(least(depth, k - p), least(side, n - j), b + p * p_.b.row + j * p_.b.column, p_.b.row,
                  p_.b.column, to + j / side * column);
    return {packed_b_, column, tile};
  }

  // For n columns of c. Tiles of which some is not c's go through a buffer.
  void multiply(int64_t k, const Rows& a, const amx::Tiles<uint8_t>& b, int64_t n, int32_t* c, bool add) {
    const int64_t whole = n % side ? 0 : p_.m / side * side;
    const amx::Signs signs{p_.a.is_signed, p_.b.is_signed};
    if (whole) amx::multiply(whole, n, k, a.data, a.row, b, signs, c, p_.c_row, add);
    for (int64_t i = whole; i < p_.m; i += panel) {
      const int64_t rows = least(panel, p_.m - i);
      amx::multiply(round_up(rows, side), round_up(n, side), k, a.data + i * a.row, a.row, b, signs, buffer_, panel,
                    false);
      for (int64_t r = 0; r < rows; ++r) {
        int32_t* const to = c + (i + r) * p_.c_row;
        for (int64_t j = 0; j < n; ++j)
          to[j] = int32_t(uint32_t(buffer_[r * panel + j]) + (add ? uint32_t(to[j]) : 0));
      }
    }
  }

  const Product& p_;
  const uint8_t *const a_, *const b_;
  uint8_t *packed_a_ = nullptr, *packed_b_ = nullptr;
  int32_t *buffer_ = nullptr, *a_zero_ = nullptr, *b_zero_ = nullptr;
  uint32_t *a_sum_ = nullptr, *b_sum_ = nullptr;
  bool sums_rows_ = false, sums_columns_ = false;
};
}  // namespace

bool product_in_tiles(const Product& p) { return Job(p).run(); }
}  // namespace dovetail::cpu::DOVETAIL_CPU_ISA::integer_gemm
#endif
