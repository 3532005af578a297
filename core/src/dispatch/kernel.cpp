// One call of a device's kernel: operands cast and laid out as the row wants them, outputs, workspace, run.
#include <algorithm>
#include <new>
#include <unordered_map>

#include "device/log.hpp"
#include "dispatch/execute.hpp"
#include "dispatch/rows.hpp"
#include "dispatch/submit.hpp"
#include "rules/rules.hpp"
#include "text.hpp"

namespace dovetail {
namespace {
// Tensors made for one call: casts, compact copies, materialised scalars.
class Temporaries {
 public:
  ~Temporaries() {
    while (n_) at(--n_).~Tensor();
  }
  const Tensor* keep(Tensor&& t) { return new (&at(n_++)) Tensor(std::move(t)); }

 private:
  Tensor& at(int i) { return reinterpret_cast<Tensor*>(bytes_)[i]; }
  alignas(Tensor) std::byte bytes_[3 * kMaxInputs * sizeof(Tensor)];  // an operand is made over at most three times
  int n_ = 0;
};

std::atomic<bool> serves_declined{false}, counts_declined{false};
std::mutex declined_mutex;
auto& declined = *new std::unordered_map<const Op*, uint64_t>;
void count_declined(const Op& op) {
  if (!counts_declined.load(std::memory_order_relaxed)) return;
  const std::lock_guard lock(declined_mutex);
  ++declined[&op];
}

constexpr int kMaxOperands = kMaxInputs + kMaxOutputs;
int64_t no_strides[1] = {0};
int64_t unit_strides[1] = {1};

class KernelCall {
  using Rows = std::span<const Plan::Candidate>;

 public:
  [[gnu::always_inline]] KernelCall(Invocation& inv, bool outputs_given)
      : inv_(inv), n_in_(inv.n_in), n_out_(inv.op.spec.n_out), outputs_given_(outputs_given) {
    for (int i = 0; i < n_in_; ++i) {
      operand_[i] = inv.in[i];
      const DType compute = inv.plan->compute[i];
      if (operand_[i] && operand_[i]->dtype != compute) [[unlikely]]
        replace(i, cast(*operand_[i], compute, *inv.device));
    }
  }

  void run(const dvt_kernel& row) {
    Stream& stream = current_stream(*inv_.device);
    Tensor& out = *inv_.out[0];
    if (!outputs_given_ && n_out_ == 1 && !inv_.in_place && !inv_.given) [[likely]]
      out.own(allocate(*inv_.device, inv_.device->index, stream, out.bytes()));
    else if (!outputs_given_) allocate_outputs(row, stream);
    else value_changes(*out.storage);
    if (out.numel == 0 && all_empty()) return;
    meet_flags(row);
    lay_out(row);
    if (capturing) [[unlikely]]
      capturing->meet_launch(inv_.op.spec.name.c_str(), row.flags & DVT_K_CAPTURE_SAFE);
    else if (!inv_.plan->simple && packs_operands(row)) [[unlikely]] return launch_packed(row, stream);
    launch(row, stream);
  }

  // False: none of these rows would serve the call.
  bool run_one_of(Rows rows, bool chosen = false) {
    const dvt_kernel* row = choose(rows);
    if (!row && !chosen) row = declined_row(rows);
    if (!chosen && logs(Log::dispatch, 3)) log_row(rows, row);
    if (row) run(*row);
    return row;
  }

  // Those that take the operands as they are come first, as they do in choose().
  std::vector<const dvt_kernel*> serving() {
    std::vector<const dvt_kernel*> rows, after_copy;
    for (const auto& [mode, row] : inv_.plan->rows()) {
      if (!old_enough(*row)) continue;
      const dvt_answer answer = ask(*row);
      if (answer.level) rows.push_back(row);
      else if (answer.need_compact) after_copy.push_back(row);
    }
    rows.insert(rows.end(), after_copy.begin(), after_copy.end());
    return rows;
  }

  // Why choose() passed these rows over. They are asked again, as only messages want to know.
  std::string reasons(Rows rows) {
    std::string text;
    for (const auto& [mode, row] : rows) {
      const char* reason = old_enough(*row) ? ask(*row).reason : nullptr;
      if (reason && text.find(reason) == std::string::npos)
        text += (text.empty() ? "" : ", ") + std::string(reason);
    }
    return text.empty() ? "no row of its table serves these attributes" : text;
  }

 private:
  // A variadic row describes its operands by one.
  static const dvt_operand& wanted(const dvt_kernel& row, uint32_t i) {
    return row.operands[std::min(i, row.n_in - 1)];
  }
  void replace(int i, Tensor&& t) { operand_[i] = temporaries_.keep(std::move(t)); }

  bool all_empty() const {
    return std::all_of(inv_.out, inv_.out + n_out_, [](const Tensor* t) { return t->numel == 0; });
  }

  void allocate_outputs(const dvt_kernel& row, Stream& stream) {
    for (uint32_t i = 0; i < n_out_; ++i) {
      Tensor& out = *inv_.out[i];
      if (inv_.given && inv_.given[i] && can_write(*inv_.given[i], row, i)) [[unlikely]] {
        out = *inv_.given[i];
        value_changes(*out.storage);
      } else if (i == 0 && inv_.in_place && takes_over(row)) {
        out.take_over(*inv_.replaced);
      } else {
        out.own(allocate(*inv_.device, inv_.device->index, stream, out.bytes()));
      }
    }
  }

  // May the row write output i there? Query functions have seen a row-major output.
  bool can_write(const Tensor& given, const dvt_kernel& row, uint32_t i) const {
    const dvt_operand& wants = row.operands[row.n_in + i];
    const bool strided = wants.flags & DVT_O_STRIDED && n_out_ == 1 && !DVT_HAS(&row, dvt_kernel, query);
    const Tensor& out = *inv_.out[i];  // in another dtype where the call runs in float32
    if (given.dtype != out.dtype || !given.same_shape(out)) return false;
    if (!aligned(given, wants) || !(given.dense || strided)) return false;
    for (int k = 0; k < n_in_; ++k) {
      const Tensor* t = operand_[k];
      if (!t || !overlap(*t, given)) continue;
      const bool exactly = t->view.data == given.view.data && t->dense && given.dense && t->same_shape(given) &&
                           t->dtype == given.dtype;
      if (!exactly || i || !(wanted(row, k).flags & DVT_O_ALIAS)) return false;
    }
    for (uint32_t k = 0; k < n_out_; ++k)
      if (k != i && inv_.given[k] && overlap(*inv_.given[k], given)) return false;
    return true;
  }

  // May output 0 lie where the replaced operand lies? The caller may have given it in several places.
  bool takes_over(const dvt_kernel& row) const {
    const Tensor& x = *inv_.replaced;
    bool found = false;
    for (int i = 0; i < n_in_; ++i) {
      const Tensor* t = operand_[i];
      if (!t || t->storage != x.storage) continue;
      const bool exactly = t->view.data == x.view.data && t->dense && t->same_shape(x);
      if (!exactly || !(wanted(row, i).flags & DVT_O_ALIAS)) return false;
      found = true;
    }
    return found && aligned(x, row.operands[row.n_in]);
  }

  static bool aligned(const Tensor& t, const dvt_operand& wants) {
    return !(reinterpret_cast<uintptr_t>(t.view.data) & ((uintptr_t{1} << wants.align_log2) - 1));
  }

  // Row-major as a row without DVT_O_STRIDED has it: an operand of an elementwise op has the output's shape.
  bool is_compact(const Tensor& t) const { return t.dense && (!inv_.op.elementwise || t.same_shape(*inv_.out[0])); }
  Tensor made_compact(int i) const {
    if (!inv_.op.elementwise) return compact(*operand_[i]);
    expect_fit(i);
    return compact(broadcast_view(*operand_[i], inv_.out[0]->shape()));
  }

  // An op made at run time may have a shape rule that looks at one operand only.
  void expect_fit(int i) const {
    if (broadcasts_to(operand_[i]->shape(), inv_.out[0]->shape())) [[likely]]
      return;
    inv_.fail(rules::described(inv_.op, i, operand_[i]->shape()) + " does not broadcast to " +
              to_string(inv_.out[0]->shape()) + ", the shape that the op's rule '" + inv_.op.spec.shape +
              "' gives: expected every axis, from the last on, to be equal or 1");
  }

  // How an operand comes to the row: as it is, or as a copy in the device's memory, row-major and aligned.
  enum class Change { none, copy, spread /* to the output's shape */ };
  Change change_for(const dvt_kernel& row, int i) const {
    const Tensor& t = *operand_[i];
    const dvt_operand& wants = wanted(row, i);
    const bool moves = !t.device && !(wants.flags & DVT_O_HOST_SCALAR);
    if (!(wants.flags & DVT_O_STRIDED) && (t.device || moves) && !is_compact(t))
      return inv_.op.elementwise ? Change::spread : Change::copy;
    return moves || !aligned(t, wants) ? Change::copy : Change::none;
  }

  // Host scalars, strides and addresses that the row does not take.
  void meet_flags(const dvt_kernel& row) {
    for (int i = 0; i < n_in_; ++i) {
      if (!operand_[i]) continue;
      const Change change = change_for(row, i);
      if (change == Change::none) [[likely]]
        continue;
      const bool scalar = !operand_[i]->device;
      if (scalar) replace(i, materialise(*operand_[i], *inv_.device));
      if (change == Change::spread) replace(i, made_compact(i));
      else if (!scalar) replace(i, compact(*operand_[i]));
    }
  }

  void lay_out(const dvt_kernel& row) {
    if (inv_.op.elementwise) lay_out_elementwise(row);
    else lay_out_as_given(row);
  }

  void lay_out_as_given(const dvt_kernel&) {
    for (int i = 0; i < n_in_; ++i) in_[i] = operand_[i] ? &operand_[i]->view : nullptr;
    for (uint32_t i = 0; i < n_out_; ++i) out_[i] = &inv_.out[i]->view;
  }

  void set_view(DLTensor& view, const Tensor& t, int rank, int64_t* shape, int64_t* strides) {
    view = {t.view.data, t.view.device, rank, t.view.dtype, shape, strides, 0};
  }

  // Row-major operands of the output's shape and single elements become one axis.
  void lay_out_elementwise(const dvt_kernel& row) {
    const Tensor& out = *inv_.out[0];
    flat_shape_ = int64_t(out.numel);
    if (!out.dense) [[unlikely]]
      return lay_out_broadcast(row);
    for (int i = 0; i < n_in_; ++i) {
      const Tensor* t = operand_[i];
      in_[i] = nullptr;
      if (!t) continue;
      if (!t->device) set_view(view_[i], *t, 0, &flat_shape_, no_strides);  // also where the output is 0-d
      else if (t->dense && t->same_shape(out)) set_view(view_[i], *t, 1, &flat_shape_, unit_strides);
      else if (t->numel == 1) set_view(view_[i], *t, 1, &flat_shape_, no_strides);
      else return lay_out_broadcast(row);
      in_[i] = &view_[i];
    }
    for (uint32_t i = 0; i < n_out_; ++i) {
      set_view(view_[kMaxInputs + i], *inv_.out[i], 1, &flat_shape_, unit_strides);
      out_[i] = &view_[kMaxInputs + i];
    }
  }

  // The general case: strides for the output's axes, 0 where an operand repeats; neighbouring axes that every
  // operand walks through in one go are merged.
  void lay_out_broadcast(const dvt_kernel&) {
    const Tensor* all[kMaxOperands];
    DLTensor* views[kMaxOperands];
    int n = 0;
    for (int i = 0; i < n_in_; ++i) {
      in_[i] = operand_[i] ? &view_[i] : nullptr;
      if (!operand_[i]) continue;
      if (operand_[i]->device) expect_fit(i), all[n] = operand_[i], views[n++] = &view_[i];
      else set_view(view_[i], *operand_[i], 0, &flat_shape_, no_strides);
    }
    for (uint32_t i = 0; i < n_out_; ++i) {
      out_[i] = &view_[kMaxInputs + i];
      all[n] = inv_.out[i], views[n++] = &view_[kMaxInputs + i];
    }
    const Tensor& out = *inv_.out[0];
    int rank = 0;  // of the merged axes, which grow from the back of the arrays
    int64_t* shape = shape_ + DVT_MAX_NDIM;
    auto stride_of = [&](const Tensor& t, int axis) {
      const int own = axis - (out.rank() - t.rank());
      return own < 0 || t.size(own) == 1 ? 0 : t.stride(own);
    };
    for (int axis = out.rank() - 1; axis >= 0; --axis) {
      const int64_t size = out.size(axis);
      if (size == 1) continue;
      bool merge = rank > 0;
      for (int k = 0; merge && k < n; ++k)
        merge = stride_of(*all[k], axis) == strides_[k][DVT_MAX_NDIM - rank] * *shape;
      if (merge) {
        *shape *= size;
        continue;
      }
      ++rank, *--shape = size;
      for (int k = 0; k < n; ++k) strides_[k][DVT_MAX_NDIM - rank] = stride_of(*all[k], axis);
    }
    if (rank == 0) {
      rank = 1, *--shape = 1;
      for (int k = 0; k < n; ++k) strides_[k][DVT_MAX_NDIM - 1] = 0;
      for (uint32_t k = n - n_out_; k < uint32_t(n); ++k) strides_[k][DVT_MAX_NDIM - 1] = 1;
    }
    for (int k = 0; k < n; ++k) set_view(*views[k], *all[k], rank, shape, &strides_[k][DVT_MAX_NDIM - rank]);
  }

  dvt_call make_call(const dvt_kernel& row) const {
    return {.struct_size = sizeof(dvt_call),
            .n_in = inv_.op.variadic ? uint32_t(n_in_) : std::min(uint32_t(n_in_), row.n_in),
            .n_out = n_out_,
            .n_attr = uint32_t(inv_.op.n_attr),
            .in = in_,
            .out = out_,
            .attr = inv_.attrs.at,
            .workspace = nullptr,
            .workspace_size = 0,
            .stream = nullptr,
            .correlation_id = 0,
            .packed = nullptr};
  }

  // Do attributes newer than the row have the declared defaults? A rule that left these would change nothing more.
  bool at_defaults(const dvt_kernel& row) const {
    int i = 0;
    for (const ParamSpec& p : inv_.op.spec.params) {
      if (is_operand(p.kind)) continue;
      if (p.since > row.op_version && !same_value(inv_.attrs.at[i], inv_.op.defaults.at[i])) return false;
      ++i;
    }
    return true;
  }

  // Attributes newer than the row are at their defaults? These are compared as the shape rule leaves them.
  bool old_enough(const dvt_kernel& row) const {
    if (row.op_version == inv_.op.spec.version) return true;
    const auto newer_than_row = [&](const ParamSpec& p) { return !is_operand(p.kind) && p.since > row.op_version; };
    if (std::ranges::none_of(inv_.op.spec.params, newer_than_row) || at_defaults(row)) return true;
    Attrs defaults = inv_.attrs;
    uint32_t newer = 0;
    Tensor shapes[kMaxOutputs];
    Invocation plain(inv_.op, inv_.device, inv_.in, n_in_, defaults);
    for (uint32_t k = 0; k < n_out_; ++k) plain.out[k] = &shapes[k];
    plain.plan = inv_.plan;
    try {
      int i = 0;
      for (const ParamSpec& p : inv_.op.spec.params) {
        if (is_operand(p.kind)) continue;
        if (p.since > row.op_version) set_default(defaults, i, p), newer |= uint32_t{1} << i;
        ++i;
      }
      plain.infer_shapes();
    } catch (const Error&) {  // the call without them would not be legal
      return false;
    }
    for (int i = 0; i < inv_.op.n_attr; ++i)
      if (newer >> i & 1 && !same_value(inv_.attrs.at[i], defaults.at[i])) return false;
    return true;
  }

  // The first row that would serve the call; nullptr where none does.
  const dvt_kernel* choose(Rows rows) {
    const dvt_kernel* after_copy = nullptr;
    uint64_t need_compact = 0;
    for (const auto& [mode, row] : rows) {
      if (!old_enough(*row)) continue;
      const dvt_answer answer = ask(*row);
      if (answer.level) return workspace_ = answer.workspace, row;
      if (answer.need_compact && !after_copy) after_copy = row, need_compact = answer.need_compact;
    }
    if (!after_copy) return nullptr;
    for (int i = 0; i < n_in_; ++i)
      if (need_compact >> i & 1 && operand_[i] && operand_[i]->device && !is_compact(*operand_[i]))
        replace(i, made_compact(i));
    const dvt_answer answer = ask(*after_copy);  // also for the workspace, which may be another now
    workspace_ = answer.workspace;
    return answer.level ? after_copy : nullptr;
  }

  // The row that the conformance suite would have serve what all of them decline.
  const dvt_kernel* declined_row(Rows rows) const {
    if (!counts_declined.load(std::memory_order_relaxed) && !serves_declined) return nullptr;
    const auto first = std::find_if(rows.begin(), rows.end(), [&](auto& c) { return old_enough(*c.row); });
    if (first == rows.end()) return nullptr;
    count_declined(inv_.op);
    return serves_declined ? first->row : nullptr;
  }

  void log_row(Rows rows, const dvt_kernel* row) {
    std::string refused;
    for (size_t i = 0, end; i < rows.size() && rows[i].row != row; i = end) {
      const std::string_view engine = engine_of(rows[i]);
      for (end = i; end < rows.size() && rows[end].row != row && engine_of(rows[end]) == engine;) ++end;
      refused += (refused.empty() ? "" : "; ") + std::string(engine) + ": " + reasons(rows.subspan(i, end - i));
    }
    const auto next = inv_.plan->without_rows();
    const bool decomposition = !next.empty() && next[0].mode == Plan::decomposition;
    log_engine(inv_, row ? engine_of(*row) : decomposition ? kMathEngine : "none", refused);
  }

  // Would the row serve the call? `level` is 0 where not. It is shown what run() would get, but no data that is not
  // there yet.
  dvt_answer ask(const dvt_kernel& row) {
    dvt_answer answer{};
    answer.struct_size = sizeof answer;
    if (!DVT_HAS(&row, dvt_kernel, query)) {
      answer.level = DVT_NATIVE;
      return answer;
    }
    const Tensor* given[kMaxInputs];
    Tensor promised[kMaxInputs];
    for (int i = 0; i < n_in_; ++i) {
      const Tensor* t = given[i] = operand_[i];
      const Change change = t ? change_for(row, i) : Change::none;
      if (change == Change::none) continue;
      if (change == Change::spread) expect_fit(i);
      promised[i].set_type(t->dtype, inv_.device);
      promised[i].set_shape(change == Change::spread ? inv_.out[0]->shape() : t->shape());
      operand_[i] = &promised[i];
    }
    lay_out(row);
    const dvt_call call = make_call(row);
    const dvt_status status = row.query(inv_.device->handle, &call, &answer);
    std::copy(given, given + n_in_, operand_);
    if (status != DVT_OK && status != DVT_UNSUPPORTED) inv_.device->fail(status, "[" + inv_.op.spec.name + "]");
    if (status == DVT_UNSUPPORTED) answer.level = 0, answer.workspace = 0;
    else if (!answer.level) answer.level = DVT_NATIVE;
    return answer;
  }

  [[gnu::noinline]] void launch_packed(const dvt_kernel& row, Stream& stream) {
    PackedOperands packed(inv_, row);
    launch(row, stream, &packed);
  }

  void launch(const dvt_kernel& row, Stream& stream, PackedOperands* packed = nullptr) {
    dvt_device* const device = inv_.device->handle;
    dvt_call call = make_call(row);
    submit(
        *inv_.device, stream, inv_.op.spec.name.c_str(), row.engine, call, {operand_, size_t(n_in_)},
        {inv_.out, n_out_}, workspace_, [&row, device](const dvt_call* c) { return row.run(device, c); }, packed);
  }

  Invocation& inv_;
  const int n_in_;
  const uint32_t n_out_;
  const bool outputs_given_;
  const Tensor* operand_[kMaxInputs];
  Temporaries temporaries_;
  uint64_t workspace_ = 0;
  const DLTensor* in_[kMaxInputs];
  const DLTensor* out_[kMaxOutputs];
  DLTensor view_[kMaxOperands];
  int64_t flat_shape_;
  int64_t shape_[DVT_MAX_NDIM];
  int64_t strides_[kMaxOperands][DVT_MAX_NDIM];
};
}  // namespace

uint64_t declined_calls(const Op& op) {
  counts_declined = true;
  const std::lock_guard lock(declined_mutex);
  return declined[&op];
}
void serve_declined(bool serve) { serves_declined = serve; }

void run_simple(Invocation& inv) { KernelCall(inv, false).run(*inv.plan->candidates[0].row); }

bool run_rows(Invocation& inv, std::span<const Plan::Candidate> rows, bool chosen) {
  return KernelCall(inv, false).run_one_of(rows, chosen);
}

void run_into(Invocation& inv) {
  if (!KernelCall(inv, true).run_one_of(inv.plan->rows()))
    inv.fail(ErrorKind::not_implemented,
             "not supported on " + inv.device->name + ": " + why_declined(inv, inv.plan->rows()));
}

std::string why_declined(Invocation& inv, std::span<const Plan::Candidate> rows) {
  return KernelCall(inv, false).reasons(rows);
}
std::vector<const dvt_kernel*> serving_rows(Invocation& inv) { return KernelCall(inv, false).serving(); }
}  // namespace dovetail
