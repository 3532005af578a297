// The index space of one call: rows of columns, and how values in memory lie in it.
#pragma once
#include <algorithm>

#include "compile/group.hpp"

namespace dovetail::cpu {
// How a value in memory lies in the index space: strides in elements.
struct Memory {
  char* data;
  int64_t step;  // along a row
  int64_t stride[DVT_MAX_NDIM];
  uint8_t bytes;
  bool of_rows;  // one element a row
  bool is_far;   // not in the caches of a core, as it has too many elements
};
constexpr int64_t far_bytes = 512 * 1024;

// The index space of one call: rows of columns, the outer axes merged where everything allows it.
struct Space {
  int64_t rows = 1, columns = 1;
  int n_outer = 0;
  int64_t size[DVT_MAX_NDIM];

  // The offset of a row, in elements.
  int64_t offset(const Memory& m, int64_t row) const {
    int64_t sum = 0;
    for (int axis = n_outer; axis-- > 0; row /= size[axis]) sum += row % size[axis] * m.stride[axis];
    return sum;
  }
  // f(i, offset) for n rows from `row` on.
  template <class F>
  void for_rows(const Memory& m, int64_t row, int64_t n, F f) const {
    if (n_outer <= 1) {
      const int64_t stride = n_outer ? m.stride[0] : 0;
      for (int64_t i = 0; i < n; ++i) f(i, (row + i) * stride);
      return;
    }
    int64_t at[DVT_MAX_NDIM], offset = 0;
    for (int axis = n_outer; axis-- > 0; row /= size[axis])
      at[axis] = row % size[axis], offset += at[axis] * m.stride[axis];
    for (int64_t i = 0; i < n; ++i) {
      f(i, offset);
      int axis = n_outer - 1;
      for (offset += m.stride[axis]; ++at[axis] == size[axis] && axis > 0; --axis)
        offset += m.stride[axis - 1] - size[axis] * m.stride[axis], at[axis] = 0;
    }
  }
  // Are n rows from any row on one run of memory?
  bool is_run(const Memory& m, int64_t n) const {
    return m.step == 1 && (n == 1 || (n_outer == 1 && m.stride[0] == columns));
  }
};

inline int64_t size_of(const Group& g, const dvt_exe_call& c, size_t axis) {
  const int64_t n = g.space[axis];
  return n < 0 ? c.symbols[-1 - n] : n;
}

inline void set_memory(Memory& m, const DLTensor& t, const Operand& x, int rank) {
  m.data = dvt::data<char>(&t), m.step = 0;
  m.bytes = uint8_t(x.type.bits / 8), m.of_rows = x.extent == Extent::rows;
  for (int i = 0; i + 1 < rank; ++i) m.stride[i] = 0;
  int64_t bytes = m.bytes;
  for (int i = 0; i < t.ndim; ++i) {
    const int64_t stride = t.shape[i] == 1 ? 0 : t.strides[i];
    if (stride) bytes *= t.shape[i];
    if (x.first_axis + i == rank - 1) m.step = stride;
    else m.stride[x.first_axis + i] = stride;
  }
  m.is_far = bytes >= far_bytes;
}

// Merges outer axes and, without reductions and values of rows, these with the columns.
class Layout {
 public:
  Layout(const Group& g, const dvt_exe_call& c, Memory* all, size_t n) : group_(g), call_(c), all_(all), n_(n) {}

  void run(Space& s) {
    const int rank = int(group_.space.size());
    s.columns = size_of(group_, call_, size_t(rank) - 1);
    int64_t size[DVT_MAX_NDIM];
    int n = 0;  // outer axes, from the inside out, in their own places
    int place[DVT_MAX_NDIM];
    for (int axis = rank - 1; axis-- > 0;) {
      const int64_t here = size_of(group_, call_, size_t(axis));
      if (here == 1) continue;
      if (n == 0 && !group_.has_reductions() && continues_columns(axis, s.columns)) {
        if (s.columns == 1)
          for (size_t k = 0; k < n_; ++k) all_[k].step = all_[k].stride[axis];
        s.columns *= here;
        continue;
      }
      s.rows *= here;
      if (n && continues(axis, place[n - 1], size[n - 1])) {
        size[n - 1] *= here;
        continue;
      }
      size[n] = here, place[n++] = axis;
    }
    s.n_outer = n;
    for (int i = 0; i < n; ++i) s.size[i] = size[n - 1 - i];
    for (size_t k = 0; k < n_; ++k) {
      int64_t stride[DVT_MAX_NDIM];
      for (int i = 0; i < n; ++i) stride[i] = all_[k].stride[place[n - 1 - i]];
      std::copy_n(stride, n, all_[k].stride);
    }
  }

 private:
  bool continues_columns(int axis, int64_t columns) const {
    for (size_t k = 0; k < n_; ++k)
      if (all_[k].of_rows ? all_[k].stride[axis] != 0
                          : columns != 1 && all_[k].stride[axis] != all_[k].step * columns)
        return false;
    return true;
  }
  bool continues(int axis, int inner, int64_t size) const {
    for (size_t k = 0; k < n_; ++k)
      if (all_[k].stride[axis] != all_[k].stride[inner] * size) return false;
    return true;
  }

  const Group& group_;
  const dvt_exe_call& call_;
  Memory* const all_;
  const size_t n_;
};
}  // namespace dovetail::cpu
