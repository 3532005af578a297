// batch_norm_train, batch_norm_train_grad: channel by channel, over the planes that it has in all images; where
// these have one element, a vector of channels at a time.
#include "chunks.hpp"
#include "simd/rows.hpp"

namespace dovetail::cpu::DOVETAIL_CPU_ISA {
namespace {
using namespace rows;

struct Planes {
  int64_t images, channels, size = 1;

  explicit Planes(const DLTensor& x) : images(x.shape[0]), channels(x.shape[1]) {
    for (int i = 2; i < x.ndim; ++i) size *= x.shape[i];
  }
  int64_t elements() const { return images * size; }  // of a channel
  int64_t at(int64_t image, int64_t channel) const { return (image * channels + channel) * size; }
  uint64_t grain() const { return 16384 / uint64_t(elements() + 1) + 1; }
};

template <class T>
constexpr T no_bias = T(-0.0);  // added to any number it changes nothing, not even -0

// Scratch memory of a plane or several, for fp16 and bf16.
template <class In>
Computed<In>* buffers(const Planes& p, int64_t n) {
  return static_cast<Computed<In>*>(scratch(Scratch::kernel, size_t(n * p.size + 1) * sizeof(Computed<In>)));
}
template <class In>
Computed<In> parameter(const dvt_call* c, uint32_t i, int64_t channel, Computed<In> missing) {
  if (!dvt::has_in(c, i)) return missing;
  const In x = dvt::data<const In>(c->in[i])[channel];
  if constexpr (is_half<In>) return widen(x);
  else return x;
}
template <class T>
void put_parameter(const DLTensor* out, int64_t channel, Computed<T> x) {
  put_row(&x, dvt::data<T>(out) + channel, 1, 1);
}

// The sum over the planes of a channel of what f(plane) gives.
template <class In, class F>
Computed<In> total(const Planes& p, const In* x, int64_t channel, Computed<In>* buffer, F f) {
  double sum = 0;
  for (int64_t i = 0; i < p.images; ++i) sum += f(widened(x + p.at(i, channel), 1, p.size, buffer));
  return Computed<In>(sum);
}

// The mean and the variance of a channel.
template <class In>
Two<Computed<In>> moments(const Planes& p, const In* x, int64_t channel, Computed<In>* buffer) {
  using T = Computed<In>;
  const T n = T(p.elements());
  const T mean = total(p, x, channel, buffer,
                       [&](const T* plane) {
                         return sum_of(plane, p.size, T(0), [](V<T> v, int64_t, int64_t) { return v; });
                       }) /
                 n;
  const V<T> middle = mean;
  const T square = total(p, x, channel, buffer, [&](const T* plane) {
    return sum_of(plane, p.size, mean, [=](V<T> v, int64_t, int64_t) { return (v - middle) * (v - middle); });
  });
  return {mean, square / n};
}

// ---- planes of one element: x is (images, channels)

// The elements of a vector of channels, image by image.
template <class In>
struct Column {
  using T = Computed<In>;
  const In* x;
  int64_t channels, count;

  V<T> operator()(int64_t image) const {
    if constexpr (is_half<In>) {
      T wide[width<T>] = {};
      widen(x + image * channels, wide, count);
      return load(wide);
    } else {
      return part(x, image * channels, count);
    }
  }
};
template <class In>
void put_column(V<Computed<In>> v, In* out, int64_t count) {
  Computed<In> lanes[width<Computed<In>>];
  v.copy_to(lanes, stdx::element_aligned);
  put_row(lanes, out, 1, count);
}

// The sum of f(image): of short runs, in pairs.
template <class T, class F>
DOVETAIL_CPU_INLINE V<T> column_sum(int64_t images, F f) {
  constexpr int64_t run = 8;
  reduction::Pairs<reduction::Sum<T>, V<T>> pairs;
  for (int64_t begin = 0; begin < images; begin += run) {
    V<T> of_run = 0;
    for (int64_t i = begin; i < least(begin + run, images); ++i) of_run += f(i);
    pairs.add(of_run);
  }
  return pairs.total();
}

template <class T>
Two<V<T>> column_moments(int64_t images, const auto& x) {
  const V<T> mean = column_sum<T>(images, x) / T(images);
  const V<T> square = column_sum<T>(images, [&](int64_t i) { return (x(i) - mean) * (x(i) - mean); });
  return {mean, square / T(images)};
}

// f(first channel, their number) for each vector of channels.
template <class T, class F>
dvt_status each_column(const Planes& p, F f) {
  return for_each_chunk(divide_up(p.channels, width<T>), p.grain(), [&](int64_t at) {
    f(at * width<T>, least(width<T>, p.channels - at * width<T>));
    return true;
  });
}
template <class In>
V<Computed<In>> parameters(const dvt_call* c, uint32_t i, int64_t channel, int64_t count, Computed<In> missing) {
  if (!dvt::has_in(c, i)) return missing;
  return Column<In>{dvt::data<const In>(c->in[i]) + channel, 0, count}(0);
}

template <class In>
dvt_status run_columns(const Planes& p, const dvt_call* c) {
  using T = Computed<In>;
  const T eps = T(dvt::Attrs(c).f64(0));
  return each_column<T>(p, [&](int64_t channel, int64_t count) {
    const Column<In> x{dvt::data<const In>(c->in[0]) + channel, p.channels, count};
    const Two<V<T>> m = column_moments<T>(p.images, x);
    put_column<T>(m.a, dvt::data<T>(c->out[1]) + channel, count);
    put_column<T>(m.b, dvt::data<T>(c->out[2]) + channel, count);
    const V<T> root = stdx::sqrt(m.b + eps), weight = parameters<In>(c, 1, channel, count, 1),
               bias = parameters<In>(c, 2, channel, count, no_bias<T>);
    In* const out = dvt::data<In>(c->out[0]) + channel;
    for (int64_t i = 0; i < p.images; ++i)
      put_column<In>((x(i) - m.a) / root * weight + bias, out + i * p.channels, count);
  });
}

template <class In>
dvt_status run_grad_columns(const Planes& p, const dvt_call* c) {
  using T = Computed<In>;
  const T eps = T(dvt::Attrs(c).f64(0));
  return each_column<T>(p, [&](int64_t channel, int64_t count) {
    const Column<In> x{dvt::data<const In>(c->in[0]) + channel, p.channels, count},
        g{dvt::data<const In>(c->in[1]) + channel, p.channels, count};
    const Two<V<T>> m = column_moments<T>(p.images, x);
    const V<T> inverse = 1 / stdx::sqrt(m.b + eps), weight = parameters<In>(c, 2, channel, count, 1);
    const V<T> ones = column_sum<T>(p.images, g);
    const V<T> products = column_sum<T>(p.images, [&](int64_t i) { return g(i) * ((x(i) - m.a) * inverse); });
    put_column<In>(products, dvt::data<In>(c->out[1]) + channel, count);
    put_column<In>(ones, dvt::data<In>(c->out[2]) + channel, count);
    const V<T> of_ones = ones / T(p.images), of_x = products / T(p.images);
    In* const out = dvt::data<In>(c->out[0]) + channel;
    for (int64_t i = 0; i < p.images; ++i) {
      const V<T> y = (x(i) - m.a) * inverse;
      put_column<In>((g(i) - of_ones - y * of_x) * inverse * weight, out + i * p.channels, count);
    }
  });
}

// ---- larger planes

template <class In>
dvt_status run(dvt_device*, const dvt_call* c) {
  using T = Computed<In>;
  constexpr int64_t W = width<T>;
  const Planes p(*c->in[0]);
  if (p.size == 1) return run_columns<In>(p, c);
  const In* const x = dvt::data<const In>(c->in[0]);
  In* const out = dvt::data<In>(c->out[0]);
  const T eps = T(dvt::Attrs(c).f64(0));
  return for_each_chunk(p.channels, p.grain(), [&](int64_t channel) {
    T* const buffer = buffers<In>(p, is_half<In>);
    if (!buffer) return false;
    const Two<T> m = moments(p, x, channel, buffer);
    put_parameter<T>(c->out[1], channel, m.a), put_parameter<T>(c->out[2], channel, m.b);
    const V<T> middle = m.a, root = std::sqrt(m.b + eps);
    const V<T> weight = parameter<In>(c, 1, channel, 1), bias = parameter<In>(c, 2, channel, no_bias<T>);
    for (int64_t image = 0; image < p.images; ++image) {
      const int64_t at = p.at(image, channel);
      const T* const from = widened(x + at, 1, p.size, buffer);
      T* to = buffer;
      if constexpr (!is_half<In>) to = out + at;
      for (int64_t i = 0; i < p.size; i += W) {
        const int64_t count = least(W, p.size - i);
        put((part(from, i, count) - middle) / root * weight + bias, to, i, count);
      }
      if constexpr (is_half<In>) put_row(buffer, out + at, 1, p.size);
    }
    return true;
  });
}

template <class In>
dvt_status run_grad(dvt_device*, const dvt_call* c) {
  using T = Computed<In>;
  constexpr int64_t W = width<T>;
  const Planes p(*c->in[0]);
  if (p.size == 1) return run_grad_columns<In>(p, c);
  const In *const x = dvt::data<const In>(c->in[0]), *const grad = dvt::data<const In>(c->in[1]);
  In* const out = dvt::data<In>(c->out[0]);
  const T eps = T(dvt::Attrs(c).f64(0));
  return for_each_chunk(p.channels, p.grain(), [&](int64_t channel) {
    T* const buffer = buffers<In>(p, 2 * is_half<In>);
    T* const of_grad = buffer + (is_half<In> ? p.size : 0);
    if (!buffer) return false;
    const Two<T> m = moments(p, x, channel, buffer);
    const V<T> middle = m.a, inverse = 1 / std::sqrt(m.b + eps);
    double ones = 0, products = 0;
    for (int64_t image = 0; image < p.images; ++image) {
      const int64_t at = p.at(image, channel);
      const T *const from = widened(x + at, 1, p.size, buffer), *const g = widened(grad + at, 1, p.size, of_grad);
      const Two<T> sums = sums_of(g, p.size, [&](V<T> v, int64_t i, int64_t count) -> Two<V<T>> {
        return {v, v * ((part(from, i, count) - middle) * inverse)};
      });
      ones += sums.a, products += sums.b;
    }
    put_parameter<In>(c->out[1], channel, T(products)), put_parameter<In>(c->out[2], channel, T(ones));
    const V<T> weight = parameter<In>(c, 2, channel, 1);
    const V<T> of_ones = T(ones / double(p.elements())), of_x = T(products / double(p.elements()));
    for (int64_t image = 0; image < p.images; ++image) {
      const int64_t at = p.at(image, channel);
      const T *const from = widened(x + at, 1, p.size, buffer), *const g = widened(grad + at, 1, p.size, of_grad);
      T* to = buffer;
      if constexpr (!is_half<In>) to = out + at;
      for (int64_t i = 0; i < p.size; i += W) {
        const int64_t count = least(W, p.size - i);
        const V<T> y = (part(from, i, count) - middle) * inverse;
        put((part(g, i, count) - of_ones - y * of_x) * inverse * weight, to, i, count);
      }
      if constexpr (is_half<In>) put_row(buffer, out + at, 1, p.size);
    }
    return true;
  });
}

template <class T>
void add(Table& table, DLDataType type, DLDataType wide) {
  dvt::Row forward("dvt.batch_norm_train", run<T>), backward("dvt.batch_norm_train_grad", run_grad<T>);
  forward.in(type).in(type, DVT_O_OPTIONAL).in(type, DVT_O_OPTIONAL).out(type).out(wide).out(wide);
  backward.in(type).in(type).in(type, DVT_O_OPTIONAL).out(type).out(type).out(type);
  for (dvt::Row* row : {&forward, &backward}) table.add(row->deterministic().kernel());
}
}  // namespace

void DOVETAIL_CPU_ROWS(Table& table) {
  add<float>(table, dvt::f32, dvt::f32);
  add<double>(table, dvt::f64, dvt::f64);
  add<f16>(table, dvt::f16, dvt::f32);
  add<bf16>(table, dvt::bf16, dvt::f32);
}
}  // namespace dovetail::cpu::DOVETAIL_CPU_ISA
