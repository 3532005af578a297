// A convolution of one or two spatial axes as one product per image and group: weights (outputs, taps) times the
// windows of x (taps, pixels). No window is copied. Some rows of x are, with their padding, as one plane for each
// place of a pixel within a step: there the windows of adjacent pixels are adjacent, so that a row of the matrix of
// windows is a plane from an offset on. Pixels are numbered along the planes' rows, which are a little longer than
// those of y; the sums of the pixels between are dropped. Windows of one element are read in x itself, and sums are
// made in y where its rows are those of the planes or whole panels. That is for vectors of pixels; where those of
// outputs take less time, output_convolver.hpp has the loops. Which they are depends on the sizes alone.
#pragma once
#include "chunks.hpp"
#include "simd/output_convolver.hpp"

namespace dovetail::cpu::DOVETAIL_CPU_ISA {
// How many channels are summed at once: their windows of a panel of pixels stay in the first cache. The same for
// all blocks: the sums' bits must not depend on how many threads cut y into them.
template <class T>
int64_t channels_at_once(const Windows& c) {
  constexpr int64_t first_cache = 24 << 10, second_cache = 256 << 10, taps = 1024;
  const int64_t places = c.h.kernel * c.w.kernel, lines = c.h.kernel * (64 + int64_t(sizeof(gemm::V<T>)) * 2),
                channel = Planes(c, largest_block(c), false).of_channel * int64_t(sizeof(T));
  const int64_t wanted = least(least(first_cache / lines, taps / places), second_cache / most(channel, 1));
  const int64_t steps = divide_up(c.channels, most(wanted, 1));
  return divide_up(c.channels, steps);
}

// Sums, `sums_row` apart, and the bias to y.
template <class In>
void put_block(const Windows& c, const Block& b, const gemm::Accumulator<In>* sums, int64_t sums_row, int64_t row,
               const In* bias, In* y) {
  using T = gemm::Accumulator<In>;
  for (int64_t o = 0; o < b.outputs; ++o, sums += sums_row, y += c.pixels) {
    const T added = bias ? gemm::load(bias[o]) : T(0);
    for (int64_t i = 0; i < b.rows; ++i) {
      const T* const from = sums + i * row;
      In* const to = y + i * c.w.out;
      for (int64_t j = 0; j < b.columns; ++j) to[j] = gemm::store<In>(from[j] + added);
    }
  }
}

// A vector of pixels of `Rows` rows of y, of one output.
template <int Rows, class T>
void sum_taps(const T* data, int64_t data_row, const int64_t* offset, const T* weight, int64_t taps, const T* bias,
              int64_t columns, T* y, int64_t y_row) {
  gemm::V<T> sum[Rows] = {};
  for (int64_t q = 0; q < taps; ++q) {
    const T* const from = data + offset[q];
    const T w = weight[q];
#pragma GCC unroll 8
    for (int r = 0; r < Rows; ++r) sum[r] += w * gemm::load_vector(from + r * data_row);
  }
#pragma GCC unroll 8
  for (int r = 0; r < Rows; ++r) {
    if (bias) sum[r] += *bias;
    T lanes[gemm::width<T>];
    const bool whole = columns == gemm::width<T>;
    gemm::store_vector(sum[r], whole ? y + r * y_row : lanes);
    if (!whole) std::memcpy(y + r * y_row, lanes, size_t(columns) * sizeof(T));
  }
}
// The same for all rows and columns: the last ones overlap.
template <int Rows, class T>
void sum_all_taps(const Block& b, const T* data, int64_t data_row, const int64_t* offset, const T* weight,
                  int64_t taps, const T* bias, T* y, int64_t y_row) {
  const int64_t columns = least(b.columns, gemm::width<T>);
  for (int64_t i = 0; i < b.rows; i += Rows) {
    i = least(i, b.rows - Rows);
    for (int64_t j = 0; j < b.columns; j += columns) {
      j = least(j, b.columns - columns);
      sum_taps<Rows>(data + i * data_row + j, data_row, offset, weight, taps, bias, columns, y + i * y_row + j,
                     y_row);
    }
  }
}

// Computes blocks on one thread. What consecutive ones share, such as copies of a part of x, is made once.
template <class In>
class Convolver {
  using T = gemm::Accumulator<In>;
  static constexpr bool converts = !std::is_same_v<In, T>;
  static constexpr int64_t W = gemm::width<T>, P = gemm::panel<T>, line = 64 / sizeof(T);

 public:
  Convolver(const Windows& c, const Operands<In>& t) : c_(c), t_(t) {}

  // False: out of memory.
  bool operator()(const Block& b) {
    if (!is_planned(b) && !plan(b)) return false;
    const int64_t output = b.group * c_.outputs + b.output, row = planes_.w.size;
    const In* const bias = t_.bias ? t_.bias + output : nullptr;
    In* const y = t_.y + (b.image * c_.groups * c_.outputs + output) * c_.pixels + b.row * c_.w.out + b.column;
    if constexpr (!converts)
      if (b.outputs == 1 && c_.channels == channels_ && c_.taps <= 64 && !x_in_place_) {
        bring(b, 0, channels_);
        const auto sum = b.rows < 4 ? sum_all_taps<1, T> : b.rows < 8 ? sum_all_taps<4, T> : sum_all_taps<8, T>;
        return sum(b, copies_, row, offset_, t_.weight + output * c_.taps, c_.taps, bias, y, c_.w.out), true;
      }
    const bool by_rows = b.columns % W == 0 && b.outputs > 2;
    const bool in_y = !converts && (b.rows == 1 || row == c_.w.out || by_rows);
    Sums to{reinterpret_cast<T*>(y), c_.pixels, nullptr, in_y && by_rows};
    if (!in_y) {
      to.row = round_up((b.rows - 1) * row + b.columns, P) + line;
      to.at = memory(Scratch::result, b.outputs * to.row);
      if (!to.at) return false;
    }
    for (int64_t first = 0; first < c_.channels; first += channels_) {
      const int64_t n = least(channels_, c_.channels - first);
      if (in_y && first + n == c_.channels) to.bias = reinterpret_cast<const T*>(bias);
      if (!add_channels(b, first, n, to)) return false;
    }
    if (!in_y) put_block(c_, b, to.at, to.row, row, bias, y);
    return true;
  }

 private:
  // Where sums are made. by_rows: each row of pixels by itself, where the rows of y are.
  struct Sums {
    T* at;
    int64_t row;
    const T* bias;
    bool by_rows;
  };

  static T* memory(Scratch purpose, int64_t n) { return static_cast<T*>(scratch(purpose, size_t(n) * sizeof(T))); }
  const In* x_of(const Block& b, int64_t channel) const {
    return t_.x + b.image * c_.image_stride + (b.group * c_.channels + channel) * c_.channel_stride;
  }

  bool add_channels(const Block& b, int64_t first, int64_t n, const Sums& to) {
    const int64_t k = n * places_, row = planes_.w.size;
    // Rows of weights that map to the same cache lines are copied.
    const bool in_place = !converts && c_.taps * int64_t(sizeof(T)) % 4096;
    const int64_t weight_row = in_place ? c_.taps : round_up(channels_ * places_, line) + line;
    const In* const from = t_.weight + (b.group * c_.outputs + b.output) * c_.taps + first * places_;
    T* const weights = memory(Scratch::operand_a, in_place ? 0 : b.outputs * weight_row);
    if (!weights) return false;
    for (int64_t o = 0; o < (in_place ? 0 : b.outputs); ++o)
      for (int64_t q = 0; q < k; ++q) weights[o * weight_row + q] = gemm::load(from[o * c_.taps + q]);
    bring(b, first, n);
    const T* const a = in_place ? reinterpret_cast<const T*>(from) : weights;
    const auto multiply = [&](int64_t pixels, const T* data, const int64_t* offset, T* sums) {
      gemm::multiply<T>(b.outputs, pixels, k, a, weight_row, 1, gemm::Shifted<T>{data, offset}, sums, to.row,
                        first != 0, to.bias);
    };
    if (x_in_place_) {
      const T* const x = reinterpret_cast<const T*>(x_of(b, first)) + b.row * c_.h.stride + b.column;
      if (whole_) multiply(whole_, x, offset_, to.at);
      if (rest_) multiply(rest_, copies_, offset_ + channels_, to.at + whole_);
    } else if (to.by_rows) {
      for (int64_t i = 0; i < b.rows; ++i) multiply(b.columns, copies_ + i * row, offset_, to.at + i * c_.w.out);
    } else {
      multiply((b.rows - 1) * row + b.columns, copies_, offset_, to.at);
    }
    return true;
  }

  bool is_planned(const Block& b) const {
    return copies_ && b.row == at_.row && b.rows == at_.rows && b.column == at_.column && b.columns == at_.columns;
  }
  // For all blocks of these rows and columns.
  bool plan(const Block& b) {
    at_ = b, brought_ = false;
    planes_ = Planes(c_, b, false);
    places_ = c_.h.kernel * c_.w.kernel, channels_ = channels_at_once<T>(c_);
    const auto is_point = [](const Side& s) { return s.kernel == 1 && s.step == 1 && !s.padding; };
    const bool rows_follow = b.rows == 1 || (b.columns == c_.w.in && c_.h.stride == c_.w.in);
    // Many passes over channels that map to the same cache lines would thrash these.
    const bool thrashes = c_.channel_stride * int64_t(sizeof(T)) % 4096 == 0 && b.outputs > 5 * gemm::tile_rows<T>;
    x_in_place_ = !converts && is_point(c_.h) && is_point(c_.w) && c_.w.stride == 1 && rows_follow && !thrashes;
    // Whole vectors are read in x; what is left of its last one is copied.
    rest_ = x_in_place_ ? b.rows * b.columns % W : 0, whole_ = b.rows * b.columns - rest_;
    const int64_t size = x_in_place_ ? channels_ * W : channels_ * planes_.of_channel + 8 * P;
    copies_ = memory(Scratch::operand_b, size);
    offset_ = static_cast<int64_t*>(
        scratch(Scratch::kernel, size_t(channels_ * (x_in_place_ ? 2 : places_)) * sizeof(int64_t)));
    if (!copies_ || !offset_) return copies_ = nullptr, false;
    std::memset(copies_, 0, size_t(size) * sizeof(T));
    if (x_in_place_)
      for (int64_t i = 0; i < channels_; ++i) offset_[i] = i * c_.channel_stride, offset_[channels_ + i] = i * W;
    else planes_.list(c_, channels_, offset_);
    return true;
  }
  // Copies what the products read of n channels of x, if it is not there.
  void bring(const Block& b, int64_t first, int64_t n) {
    const In* const x = x_of(b, first);
    if (brought_ && b.image == at_.image && b.group == at_.group) return;
    at_.image = b.image, at_.group = b.group, brought_ = first == 0 && n == c_.channels;
    if (!x_in_place_) return planes_.copy(c_, x, n, copies_);
    if constexpr (!converts)
      for (int64_t i = 0; i < (rest_ ? n : 0); ++i)
        std::memcpy(copies_ + i * W, x + i * c_.channel_stride + b.row * c_.h.stride + b.column + whole_,
                    size_t(rest_) * sizeof(T));
  }

  const Windows& c_;
  const Operands<In>& t_;
  Block at_{};            // what is planned and brought
  bool brought_ = false;  // all channels of its group
  Planes planes_;
  int64_t places_ = 0, channels_ = 0;  // of a window; that are summed at once
  bool x_in_place_ = false;
  int64_t whole_ = 0, rest_ = 0;  // pixels
  T* copies_ = nullptr;
  int64_t* offset_ = nullptr;
};

// y cut into blocks: some outputs by some 512 pixels, fewer outputs by more; small where threads would have none.
struct BlockCut {
  int64_t unit, panels;        // outputs of a panel; panels of all outputs
  int64_t across, down, deep;  // blocks side by side

  BlockCut(const Windows& c, bool by_outputs, int64_t panel) : unit(by_outputs ? panel : 1) {
    constexpr int64_t least_work = 600'000;
    const int64_t threads = int64_t(dvt::host->num_threads(dvt::host)), others = c.images * c.groups;
    const Block largest = largest_block(c);
    panels = divide_up(c.outputs, unit);
    deep = divide_up(c.outputs, by_outputs ? 256 : 72);
    across = divide_up(c.w.out, largest.columns), down = divide_up(c.h.out, largest.rows);
    while (!is_even(others * deep * across * down, threads)) {
      const int64_t rows = divide_up(c.h.out, down), outputs = divide_up(c.outputs, deep);
      const int64_t of_block = rows * divide_up(c.w.out, across);
      if (outputs * of_block * c.taps <= least_work) break;
      // Blocks of the same outputs copy weights again, and those of the same pixels x.
      const bool may_deepen = by_outputs && deep < panels;
      if (rows > 1 && !(may_deepen && of_block < c.h.kernel * outputs)) ++down;
      else if (may_deepen) ++deep;
      else break;
    }
  }
  int64_t count(const Windows& c) const { return c.images * c.groups * deep * down * across; }
  Block block(const Windows& c, int64_t at) const {
    Block b{};
    const auto part = [&at](int64_t count, int64_t total, int64_t& first, int64_t& n) {
      const int64_t i = at % count;
      first = total * i / count, n = total * (i + 1) / count - first, at /= count;
    };
    part(deep, panels, b.output, b.outputs);
    b.output *= unit, b.outputs = least(b.outputs * unit, c.outputs - b.output);
    part(across, c.w.out, b.column, b.columns);
    part(down, c.h.out, b.row, b.rows);
    b.group = at % c.groups, b.image = at / c.groups;
    return b;
  }

 private:
  // Threads that take these blocks finish at about the same time.
  static bool is_even(int64_t blocks, int64_t threads) {
    return blocks * 16 >= divide_up(blocks, threads) * threads * 15;
  }
};

template <class Convolver, class In>
dvt_status convolve(const Windows& c, const Operands<In>& t, const BlockCut& cut) {
  const int64_t work = c.images * c.groups * c.outputs * c.pixels * c.taps / cut.count(c);
  std::atomic<bool> complete{true};
  dvt::parallel_for(uint64_t(cut.count(c)), uint64_t(300'000 / (work + 1) + 1),
                    [&](uint64_t begin, uint64_t end, uint32_t) {
                      Convolver convolve_block(c, t);
                      for (int64_t at = int64_t(begin); at < int64_t(end); ++at)
                        if (!convolve_block(cut.block(c, at))) complete.store(false, std::memory_order_relaxed);
                    });
  return complete.load(std::memory_order_relaxed) ? DVT_OK : DVT_OOM;
}

// y = the convolution of x, by blocks on the pool. `taps` of c is not 0.
template <class In>
dvt_status convolve(const Windows& c, const Operands<In>& t) {
  using T = gemm::Accumulator<In>;
  if (!c.images || !c.outputs || !c.pixels) return DVT_OK;
  if constexpr (std::is_floating_point_v<T>)
    if (better_by_outputs<T>(c)) return convolve<OutputConvolver<In>>(c, t, {c, true, gemm::panel<T>});
  return convolve<Convolver<In>>(c, t, {c, false, 1});
}
}  // namespace dovetail::cpu::DOVETAIL_CPU_ISA
