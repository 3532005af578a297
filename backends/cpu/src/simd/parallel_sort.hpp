// Sorting one long array on all threads: each sorts a part of it, then each merges its share of the result, which
// is an equal number of keys whatever their values. After H. Shi and J. Schaeffer, "Parallel sorting by regular
// sampling" (1992), with the exact ranks in place of samples.
#pragma once
#include <algorithm>

#include "scratch.hpp"
#include "simd/vector_sort.hpp"

namespace dovetail::cpu::DOVETAIL_CPU_ISA {
template <class Key>
class ParallelSort {
  using Sort = VectorSort<Key>;
  using Registers = RegisterSort<Key>;
  static constexpr int most_parts = 16;
  static constexpr int64_t shortest_part = 1 << 14;

 public:
  // The number of parts for each of `rows` arrays of n keys. Less than two: threads had better sort whole ones.
  static int parts_of(int64_t n, int64_t rows) {
    const int64_t threads = dvt::host->num_threads(dvt::host);
    return rows < threads ? int(least(least(threads, most_parts), n / shortest_part)) : 1;
  }

  ParallelSort(int64_t n, int parts)
      : n_(n),
        parts_(parts),
        length_(round_up(divide_up(n, parts), Sort::step)),
        room_(length_ + parts * Sort::step),
        sorted_(static_cast<Key*>(scratch(Scratch::kernel, size_t(parts * room_) * sizeof(Key)))),
        buffer_(static_cast<Key*>(scratch(Scratch::operand_a, size_t(parts * room_) * sizeof(Key)))),
        result_(static_cast<Key*>(scratch(Scratch::operand_b, size_t(parts * room_) * sizeof(Key)))) {}
  bool has_memory() const { return sorted_ && buffer_ && result_; }

  // read(begin, count, keys) makes the keys of a part.
  template <class Read>
  void sort_parts(Read read) {
    dvt::parallel_for(uint64_t(parts_), 1, [&](uint64_t begin, uint64_t end, uint32_t) {
      for (int part = int(begin); part < int(end); ++part) {
        const int64_t at = part * length_, count = size_of(part), padded = round_up(count, Sort::step);
        Key* const keys = sorted_ + at;
        read(at, count, keys);
        Registers::pad(keys + count, padded - count);
        Key* const sorted = Sort::sort(keys, buffer_ + at, padded);
        if (sorted != keys) std::memcpy(keys, sorted, size_t(count) * sizeof(Key));
      }
    });
  }
  // write(keys, rank, count) takes the sorted keys from that of rank `rank` on.
  template <class Write>
  void merge(Write write) {
    dvt::parallel_for(uint64_t(parts_), 1, [&](uint64_t begin, uint64_t end, uint32_t) {
      for (int share = int(begin); share < int(end); ++share) {
        const int64_t from = n_ * share / parts_, to = n_ * (share + 1) / parts_;
        write(merged(share, from, to), from, to - from);
      }
    });
  }
  // Of the keys that are smaller.
  int64_t count_below(Key limit) const {
    return count([=](Key key) { return key < limit; });
  }

 private:
  int64_t size_of(int part) const {
    const int64_t rest = n_ - part * length_;
    return rest < 0 ? 0 : least(length_, rest);
  }
  // Of the keys of a part for which the condition holds, which it does of the first ones.
  template <class Condition>
  int64_t count_in(int part, Condition holds) const {
    const Key* const keys = sorted_ + part * length_;
    return std::partition_point(keys, keys + size_of(part), holds) - keys;
  }
  template <class Condition>
  int64_t count(Condition holds) const {
    int64_t sum = 0;
    for (int part = 0; part < parts_; ++part) sum += count_in(part, holds);
    return sum;
  }

  // How many of the first `rank` keys are in each part; of equal keys those of earlier parts are the first.
  void split(int64_t rank, int64_t (&taken)[most_parts]) const {
    using U = std::make_unsigned_t<Key>;
    Key low = Key(~Registers::largest), high = Registers::largest;
    while (low < high) {  // the smallest key that `rank` keys do not exceed
      const Key middle = Key(U(low) + (U(high) - U(low)) / 2);
      if (count([=](Key key) { return key <= middle; }) >= rank) high = middle;
      else low = Key(middle + 1);
    }
    int64_t equal = rank - count_below(low);
    for (int part = 0; part < parts_; ++part) {
      const int64_t below = count_in(part, [=](Key key) { return key < low; }),
                    others = count_in(part, [=](Key key) { return key <= low; }) - below,
                    some = least(equal, others);
      taken[part] = below + some, equal -= some;
    }
  }

  const Key* merged(int share, int64_t from, int64_t to) {
    int64_t begins[most_parts], ends[most_parts], starts[most_parts + 1] = {};
    split(from, begins), split(to, ends);
    Key *in = buffer_ + share * room_, *out = result_ + share * room_;
    int runs = 0;
    for (int part = 0; part < parts_; ++part) {
      const int64_t count = ends[part] - begins[part], padded = round_up(count, Sort::step);
      if (!count) continue;
      Key* const keys = in + starts[runs];
      std::memcpy(keys, sorted_ + part * length_ + begins[part], size_t(count) * sizeof(Key));
      Registers::pad(keys + count, padded - count);
      starts[++runs] = keys + padded - in;
    }
    for (; runs > 1; runs = (runs + 1) / 2, std::swap(in, out)) {
      for (int run = 0; run < runs; run += 2) {
        const int middle = run + 1, end = least(run + 2, runs);
        Sort::merge(in + starts[run], in + starts[middle], in + starts[end], out + starts[run]);
        starts[run / 2 + 1] = starts[end];
      }
    }
    return in;
  }

  int64_t n_;
  int parts_;
  int64_t length_, room_;  // of a part; of a share with the padding of its runs
  Key *sorted_, *buffer_, *result_;
};
}  // namespace dovetail::cpu::DOVETAIL_CPU_ISA
