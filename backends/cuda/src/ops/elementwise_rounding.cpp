#include "elementwise.hpp"

namespace gpu {
void GPU_ROWS(dvt::KernelTable& table) {
  add_elementwise<"dvt.floor">(table, 1, integers + floats);
  add_elementwise<"dvt.ceil">(table, 1, floats);
  add_elementwise<"dvt.trunc">(table, 1, floats);
  add_elementwise<"dvt.round">(table, 1, floats);
  add_elementwise<"dvt.nextafter">(table, 2, {dvt::f32, dvt::f64});  // of 16 bits they are no float32's neighbours
}
}  // namespace gpu
