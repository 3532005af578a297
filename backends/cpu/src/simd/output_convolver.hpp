// Blocks of a convolution whose vectors are of outputs: each pixel of a window is broadcast, so that no lane is
// spent on what a row of y lacks to a vector. Weights are packed by panels of outputs, a run of taps at a time, and
// sums, made as (pixels, outputs of a panel), are transposed to y.
#pragma once
#include "simd/planes.hpp"
#include "simd/transpose.hpp"

namespace dovetail::cpu::DOVETAIL_CPU_ISA {
// Whether that takes less time than vectors of pixels, by the multiplications of lanes. Each weight is packed,
// which costs as much as a few pixels; each sum is transposed, as much as a few taps.
template <class T>
bool better_by_outputs(const Windows& c) {
  constexpr int64_t W = gemm::width<T>, packing = 8, transposing = 8;
  const Block b = largest_block(c);
  const int64_t pixels = b.rows * b.columns, between = (c.w.kernel - 1) * c.w.dilation / c.w.step;
  const bool by_rows = b.columns % W == 0;  // without the places between them
  const int64_t places = by_rows ? pixels : pixels + (b.rows - 1) * between;
  return round_up(c.outputs, W) * (pixels + packing) * (c.taps + transposing) <
         c.outputs * round_up(places, W) * c.taps;
}

// Computes blocks on one thread.
template <class In>
class OutputConvolver {
  using T = gemm::Accumulator<In>;
  static constexpr int64_t W = gemm::width<T>, P = gemm::panel<T>;

 public:
  OutputConvolver(const Windows& c, const Operands<In>& t)
      : c_(c), t_(t), places_(c.h.kernel * c.w.kernel), channels_(channels_at_once()) {}

  // False: out of memory.
  bool operator()(const Block& b) {
    const Planes planes(c_, b, true);
    const int64_t size = channels_ * planes.of_channel, k = channels_ * places_;
    pixels_ = b.rows * b.columns;
    sums_size_ = k == c_.taps ? 0 : pixels_ * P;  // one panel's are enough if they are complete at once
    x_ = memory(Scratch::operand_b, size);
    weights_ = memory(Scratch::operand_a, gemm::run_length<T>(k) * P);
    sums_ = memory(Scratch::result, sums_size_ ? divide_up(b.outputs, P) * sums_size_ : pixels_ * P);
    offset_ = static_cast<int64_t*>(scratch(Scratch::kernel, size_t(k) * sizeof(int64_t)));
    if (!x_ || !weights_ || !sums_ || !offset_) return false;
    std::memset(x_, 0, size_t(size) * sizeof(T));
    planes.list(c_, channels_, offset_);
    for (int64_t first = 0; first < c_.channels; first += channels_) {
      const int64_t n = least(channels_, c_.channels - first);
      planes.copy(c_, x_of(b, first), n, x_);
      for (int64_t o = 0; o < b.outputs; o += P) add_taps(b, o, first, n);
    }
    return true;
  }

 private:
  static T* memory(Scratch purpose, int64_t n) { return static_cast<T*>(scratch(purpose, size_t(n) * sizeof(T))); }
  // One run of taps, and equal ones.
  int64_t channels_at_once() const {
    const int64_t most_channels = most(gemm::longest_run<T> / places_, 1);
    return divide_up(c_.channels, divide_up(c_.channels, most_channels));
  }

  const In* weight_of(const Block& b, int64_t o, int64_t channel) const {
    return t_.weight + (b.group * c_.outputs + b.output + o) * c_.taps + channel * places_;
  }
  const In* x_of(const Block& b, int64_t channel) const {
    return t_.x + b.image * c_.image_stride + (b.group * c_.channels + channel) * c_.channel_stride;
  }
  // What is read after the panel at output o: the weights of the next one or, once, more of x.
  gemm::Rectangle used_soon(const Block& b, int64_t o, int64_t first, int64_t n) const {
    constexpr int64_t size = sizeof(In);
    const bool last = first + n == c_.channels;
    const In* const weight =
        o + P < b.outputs ? weight_of(b, o + P, first) : weight_of(b, 0, last ? first : first + n);
    const int64_t weights = n * places_ * size;
    if (o == 0 && !last) {
      const int64_t row = most(b.row * c_.h.step - c_.h.padding, 0),
                    lines = least(b.rows * c_.h.step, c_.h.in - row) * c_.h.stride * size;
      if (lines * n > weights * least(P, b.outputs))
        return {reinterpret_cast<const char*>(x_of(b, first + n) + row * c_.h.stride), c_.channel_stride * size, n,
                lines};
    }
    return {reinterpret_cast<const char*>(weight), c_.taps * size, least(P, b.outputs - o), weights};
  }
  // To the panel of outputs from o on of the block: the taps of n channels.
  void add_taps(const Block& b, int64_t o, int64_t first, int64_t n) {
    const int64_t output = b.group * c_.outputs + b.output + o, outputs = least(P, b.outputs - o), k = n * places_;
    const In* const weight = weight_of(b, o, first);
    T* const sums = sums_ + o / P * sums_size_;
    const bool last = first + n == c_.channels;
    const gemm::Rectangle soon = used_soon(b, o, first, n);
    T bias[P] = {};
    for (int64_t i = 0; last && t_.bias && i < outputs; ++i) bias[i] = gemm::load(t_.bias[output + i]);
    for (int64_t q = 0, run = gemm::run_length<T>(k); q < k; q += run) {
      const int64_t taps = least(run, k - q);
      gemm::pack(taps, outputs, weight + q, 1, c_.taps, int(P), weights_);
      gemm::add_pixels<T>(pixels_, taps, x_, offset_ + q, weights_, outputs, sums, first || q,
                          last && t_.bias && q + taps == k ? bias : nullptr, soon);
    }
    if (last) put(b, sums, output, outputs);
  }

  void put(const Block& b, const T* sums, int64_t output, int64_t outputs) {
    In* to = t_.y + (b.image * c_.groups * c_.outputs + output) * c_.pixels + b.row * c_.w.out + b.column;
    const bool follow = b.columns == c_.w.out;
    const int64_t n = follow ? pixels_ : b.columns;
    for (int64_t i = 0; i < pixels_; i += n, to += c_.w.out)
      transpose(n, outputs, sums + i * P, P, to, c_.pixels, [](T x) { return gemm::store<In>(x); });
  }

  const Windows& c_;
  const Operands<In>& t_;
  int64_t places_, channels_;  // of a window; that are summed at once
  int64_t pixels_ = 0, sums_size_ = 0;
  T *x_ = nullptr, *weights_ = nullptr, *sums_ = nullptr;
  int64_t* offset_ = nullptr;
};
}  // namespace dovetail::cpu::DOVETAIL_CPU_ISA
