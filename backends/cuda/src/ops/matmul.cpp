// matmul and linear: by cuBLASLt where it has an algorithm for the types and strides, else by a kernel of our own.
#include <algorithm>
#include <array>
#include <limits>
#include <optional>
#include <string>

#include "device/errors.hpp"
#include "dovetail/product.hpp"
#include "gpu/dtypes.hpp"
#include "kernels/common/product.hpp"
#include "launch.hpp"
#include "settings.hpp"

namespace gpu {
namespace {
constinit std::array<KernelId, type_count> kernels{};

using Of = Product (*)(const dvt_call*);

// ---- by cuBLASLt ----------------------------------------------------------------------

// A matrix that lies in contiguous lines which do not overlap. Nothing where it does not: of an axis of one
// element the stride counts for nothing.
std::optional<cublaslt::Matrix> as_lines(uint64_t rows, uint64_t columns, int64_t row, int64_t column) {
  const auto height = int64_t(rows), width = int64_t(columns);
  if ((width == 1 || column == 1) && (height == 1 || row >= width)) return {{height == 1 ? width : row, 0, 0}};
  if ((height == 1 || row == 1) && (width == 1 || column >= height)) return {{width == 1 ? height : column, 1, 0}};
  return std::nullopt;
}

// A product as calls of cuBLASLt: one for each of the outer axes of the batch, all of the last one in each.
struct Calls {
  cublaslt::Product each;
  uint64_t count;
};

std::optional<Calls> as_calls(const dvt_call* c, const Product& p) {
  constexpr uint64_t most = std::numeric_limits<int32_t>::max(), most_calls = 64;
  const DLDataType type = c->in[0]->dtype;
  const bool empty = !p.matrices || !std::min({p.m, p.n, p.k});
  if (!cublaslt::serves(type) || empty || std::max({p.m, p.n, p.k}) > most) return std::nullopt;
  const auto a = as_lines(p.m, p.k, p.a_row, p.a_column), b = as_lines(p.k, p.n, p.b_row, p.b_column);
  if (!a || !b) return std::nullopt;
  Calls calls = {};
  cublaslt::Product& each = calls.each;
  each.m = int64_t(p.m), each.n = int64_t(p.n), each.k = int64_t(p.k), each.batch = 1;
  each.a = *a, each.b = *b, each.c_step = each.m * each.n, each.set_type(type);
  if (p.axes) {
    const uint32_t last = p.axes - 1;
    each.batch = p.batch[last], each.a.step = p.a_batch[last], each.b.step = p.b_batch[last];
  }
  each.has_bias = dvt::has_in(c, 2);
  if (each.has_bias && !cublaslt::adds_bias(type)) return std::nullopt;
  each.allows_tf32 = dvt::same(type, dvt::f32) && allows_tf32();
  each.alignment = cublaslt::most_alignment;
  calls.count = p.matrices / uint64_t(each.batch);
  if (uint64_t(each.batch) > most || calls.count > most_calls) return std::nullopt;
  return calls;
}

std::optional<uint64_t> workspace(dvt_device* d, const dvt_call* c, const Product& p) {
  if (!cublaslt::is_available()) return std::nullopt;
  const auto calls = as_calls(c, p);
  return calls ? d->cublaslt.workspace(calls->each) : std::nullopt;
}

// The offset of each operand in one of the calls, in elements.
struct Offsets {
  int64_t a = 0, b = 0, c = 0;

  Offsets(const Product& p, const Calls& calls, uint64_t call) {
    c = int64_t(call) * calls.each.batch * calls.each.c_step;
    for (uint32_t axis = p.axes ? p.axes - 1 : 0; axis-- > 0; call /= uint64_t(p.batch[axis])) {
      const auto i = int64_t(call % uint64_t(p.batch[axis]));
      a += i * p.a_batch[axis], b += i * p.b_batch[axis];
    }
  }
};

cublaslt::Addresses addresses(const dvt_call* c, const Offsets& at) {
  const int64_t bytes = bytes_of(c->in[0]->dtype);
  return {dvt::data<const std::byte>(c->in[0]) + at.a * bytes, dvt::data<const std::byte>(c->in[1]) + at.b * bytes,
          dvt::has_in(c, 2) ? dvt::data<const void>(c->in[2]) : nullptr,
          dvt::data<std::byte>(c->out[0]) + at.c * bytes};
}

int64_t alignment(const cublaslt::Addresses& at) {
  const uintptr_t all = uintptr_t(at.a) | uintptr_t(at.b) | uintptr_t(at.c) | uintptr_t(cublaslt::most_alignment);
  return int64_t(all & (~all + 1));
}

// False where it has no algorithm for the addresses: then nothing has been enqueued.
bool run_library(dvt_device* d, const dvt_call* c, const Product& p, Calls calls) {
  dvt_stream& stream = stream_of(d, c->stream);
  for (uint64_t i = 0; i < calls.count; ++i)
    calls.each.alignment = std::min(calls.each.alignment, alignment(addresses(c, Offsets(p, calls, i))));
  for (uint64_t i = 0; i < calls.count; ++i)
    if (!d->cublaslt.run(calls.each, addresses(c, Offsets(p, calls, i)), c->workspace, c->workspace_size,
                         stream.handle))
      return false;
  return true;
}

// ---- rows ----------------------------------------------------------------------

template <Of product>
dvt_status run(dvt_device* d, const dvt_call* c) {
  const DLDataType type = c->in[0]->dtype;
  const Product p = product(c);
  const auto tile = uint64_t(product_tile(type.bits));
  const Grid grid =
      grid_of_blocks(p.matrices * ((p.m + tile - 1) / tile) * ((p.n + tile - 1) / tile), product_threads);
  const auto in = [&](uint32_t i) { return dvt::has_in(c, i) ? dvt::data<const void>(c->in[i]) : nullptr; };
  return launch(d, c, kernels[type_index(type)], grid, in(0), in(1), in(2), dvt::data<void>(c->out[0]), p);
}

template <Of product>
dvt_status run_by_library(dvt_device* d, const dvt_call* c) {
  bool done = false;
  const dvt_status status = guarded(d, [&]() -> dvt_status {
    const Product p = product(c);
    const auto calls = as_calls(c, p);
    done = calls && run_library(d, c, p, *calls);
    return done ? finish(d, c) : DVT_OK;
  });
  return status || done ? status : run<product>(d, c);
}

dvt_status refuse(dvt_answer* answer, const char* reason, uint64_t need_compact = 0) {
  DVT_PUT(answer, dvt_answer, need_compact, need_compact);
  DVT_PUT(answer, dvt_answer, reason, reason);
  return DVT_UNSUPPORTED;
}

// The call as it is when the host has made some of its operands row-major.
class Compacted {
 public:
  Compacted(const dvt_call* c, uint64_t operands) : call_(*c) {
    for (uint32_t i = 0; i < c->n_in; ++i) {
      in_[i] = c->in[i];
      if (operands >> i & 1) in_[i] = compact(*c->in[i], i);
    }
    call_.in = in_;
  }
  Compacted(const Compacted&) = delete;
  Compacted& operator=(const Compacted&) = delete;
  const dvt_call* get() const { return &call_; }

 private:
  const DLTensor* compact(const DLTensor& t, uint32_t i) {
    int64_t step = 1;
    for (int32_t axis = t.ndim; axis-- > 0; step *= t.shape[axis]) strides_[i][axis] = step;
    tensors_[i] = t, tensors_[i].strides = strides_[i];
    return &tensors_[i];
  }
  static constexpr int most = 3;
  dvt_call call_;
  const DLTensor* in_[most];
  DLTensor tensors_[most];
  int64_t strides_[most][DVT_MAX_NDIM];
};

// Which operands cuBLASLt wants row-major, where copies of them are cheap next to the product. 0: none, or in vain.
template <Of product>
uint64_t copies_worth_while(dvt_device* d, const dvt_call* c) {
  constexpr uint64_t least = 32;
  const Product p = product(c);
  if (std::min({p.m, p.n, p.k}) < least || !cublaslt::is_available() || as_calls(c, p)) return 0;
  const uint64_t copied =
      (as_lines(p.m, p.k, p.a_row, p.a_column) ? 0 : 1) | (as_lines(p.k, p.n, p.b_row, p.b_column) ? 0 : 2);
  const Compacted later(c, copied);
  return workspace(d, later.get(), product(later.get())) ? copied : 0;
}

template <Of product>
dvt_status query_library(dvt_device* d, const dvt_call* c, dvt_answer* answer) {
  return guarded(d, [&]() -> dvt_status {
    const Product p = product(c);
    if (const auto bytes = workspace(d, c, p)) {
      DVT_PUT(answer, dvt_answer, level, DVT_NATIVE);
      DVT_PUT(answer, dvt_answer, workspace, *bytes);
      return DVT_OK;
    }
    if (const char* why = cublaslt::unavailable()) return refuse(answer, why);
    return refuse(answer, "cuBLASLt has no algorithm for these sizes and strides",
                  copies_worth_while<product>(d, c));
  });
}

// Ours serves every call, but leaves those to cuBLASLt for which it needs copies.
template <Of product>
dvt_status query_own(dvt_device* d, const dvt_call* c, dvt_answer* answer) {
  return guarded(d, [&]() -> dvt_status {
    if (copies_worth_while<product>(d, c)) return refuse(answer, "with copies cuBLASLt is faster");
    DVT_PUT(answer, dvt_answer, level, DVT_NATIVE);
    return DVT_OK;
  });
}

template <Of product>
void add_rows_of(dvt::KernelTable& table, const char* op, DLDataType type, bool has_bias) {
  const auto add = [&](dvt::Row row, unsigned bias_align_log2 = 0) {
    row.in(type, DVT_O_STRIDED).in(type, DVT_O_STRIDED);
    if (has_bias) row.in(type, DVT_O_OPTIONAL, bias_align_log2);
    table.add(row.out(type));
  };
  if (!cublaslt::serves(type)) return add(dvt::Row(op, run<product>).deterministic());
  add(dvt::Row(op, run_by_library<product>).engine("cublaslt").query(query_library<product>),
      cublaslt::bias_align_log2);
  add(dvt::Row(op, run<product>).query(query_own<product>).deterministic());
}

std::string suffix(DLDataType type) {
  if (type.code == DVT_COMPLEX) return type.bits == 64 ? "c64" : "c128";
  // Wrapping sums of products have the same bits in signed and unsigned types.
  return type_name(type.code == DVT_INT ? unsigned_of(type) : type);
}
}  // namespace

void GPU_ROWS(dvt::KernelTable& table) {
  for (const DLDataType type : integers + floats + Types{dvt::c64, dvt::c128}) {
    kernels[type_index(type)] = find_kernel("matmul_" + suffix(type));
    add_rows_of<dvt::product_of_matmul>(table, "dvt.matmul", type, false);
    add_rows_of<dvt::product_of_linear>(table, "dvt.linear", type, true);
  }
}
}  // namespace gpu
