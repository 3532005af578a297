// Slices along one axis that indices name, overwritten with updates.
#include "gpu/kernels/shared/slices.hpp"
#include "kernels/common/elementwise.hpp"
#include "kernels/common/raise.hpp"
#include "kernels/common/rows.hpp"

namespace {
template <class T>
void scatter(const T* updates, const int64_t* indices, T* out, const gpu::Slices& how,
             const gpu::IterationSpace& from, const gpu::Scalar& value, gpu::Fault* fault) {
  gpu::for_each_item(how.n, [&](size_t i) {
    const uint64_t slice = i / how.inner, outer = slice / how.count;
    int64_t index = indices[slice - outer * how.count];
    if (!gpu::find_index(index, fault, how.call, how.axis, how.size)) return;
    out[(outer * uint64_t(how.size) + uint64_t(index)) * how.inner + (i - slice * how.inner)] =
        updates ? updates[gpu::locate(from.axis, 0, from.axes, i).at[0]] : gpu::value_of<T>(value);
  });
}
}  // namespace

#define SCATTER(suffix, T)                                                                       \
  KERNEL(1, scatter_##suffix)(const T* updates, const int64_t* indices, T* out, gpu::Slices how, \
                              gpu::IterationSpace from, gpu::Scalar value, gpu::Fault* fault) {  \
    scatter(updates, indices, out, how, from, value, fault);                                     \
  }
DVT_SIZES(SCATTER)
