#include "dispatch/capture.hpp"

#include <algorithm>
#include <atomic>
#include <cstring>

#include "device/guard.hpp"
#include "device/log.hpp"
#include "dispatch/execute.hpp"
#include "text.hpp"

namespace dovetail {
namespace {
constexpr uint64_t kMostBytes = uint64_t{256} << 20;  // that a capture holds; at most 1/16 of the device's memory
constexpr uint64_t kMostCopied = uint64_t{16} << 20;  // bytes of inputs for each replay
constexpr int kMostMoves = 2;                         // an input that moved so often is copied from then on

uint64_t most_bytes(const Device& device) {
  const uint64_t total = device.props.mem_total;
  return total ? std::min(kMostBytes, total / 16) : kMostBytes;
}

std::vector<int64_t> strides_of(const Tensor& t) {
  return {t.dims + DVT_MAX_NDIM, t.dims + DVT_MAX_NDIM + t.rank()};
}
bool lies_at(const Tensor& t, const void* data, const std::vector<int64_t>& strides) {
  return t.view.data == data && std::equal(strides.begin(), strides.end(), t.dims + DVT_MAX_NDIM);
}

bool equal(const std::vector<Scalar>& a, const std::vector<Scalar>& b) {
  return std::ranges::equal(a, b, [](const Scalar& x, const Scalar& y) {
    return x.dtype == y.dtype && !std::memcmp(x.bits, y.bits, info(x.dtype).bytes());
  });
}
const std::vector<Scalar>& or_none(const std::vector<Scalar>* constants) {
  static const std::vector<Scalar> none;
  return constants ? *constants : none;
}

Tensor empty_like(const TensorType& t, Device& device) {
  Tensor made;
  made.set_type(t.dtype, &device);
  made.set_shape(t.shape());
  return made;
}

void copy_values(Tensor& to, const Tensor& from, Stream& stream) {
  if (!from.numel) return;
  if (!from.dense) return copy_into(to, from);
  use(*from.storage, stream, false);
  use(*to.storage, stream, true);
  copy_bytes(*to.device, stream, to.view, from.view);
}
}  // namespace

const dvt_capture* capture_of(const Device& device) {
  const Backend& backend = *device.backend;
  if (backend.interpreted || !device.has_streams() || !DVT_HAS(backend.table, dvt_backend, extension))
    return nullptr;
  return static_cast<const dvt_capture*>(backend.table->extension("dovetail.capture", DVT_X_CAPTURE));
}

// ---- one recorded run -------------------------------------------------------------------------------------------

// The results of a run in the capture's memory, to which they go back.
class Capture::Results {
 public:
  Results(CaptureMemory& memory, size_t n) : at(n), memory_(memory) {}
  ~Results() {
    for (Tensor& t : at) {
      if (!t.storage || !memory_.owns(*t.storage)) continue;
      Storage* const s = std::exchange(t.storage, nullptr);
      if (s->refs.fetch_sub(1, std::memory_order_acq_rel) == 1) memory_.give_back(s);
    }
  }
  Results(const Results&) = delete;
  std::vector<Tensor> at;

 private:
  CaptureMemory& memory_;
};

bool Capture::Fixed::holds(const Tensor& t) const { return lies_at(t, data, strides); }

Capture::Capture(std::shared_ptr<const Executable> e, std::vector<bool> fixed, const std::vector<Scalar>* constants)
    : executable_(std::move(e)),
      functions_(*capture_of(executable_->device())),
      constants_(or_none(constants)),
      resets_(executable_->device().resets),
      memory_(executable_->device(), most_bytes(executable_->device())),
      is_fixed_(std::move(fixed)) {}

Capture::~Capture() {
  const DeviceState state = memory_.device.state;
  if (graph_ && (state == DeviceState::usable || state == DeviceState::lost)) functions_.destroy(graph_);
  memory_.hold();  // what places and outputs release
}

bool Capture::make_places(const std::vector<Tensor>& in, Stream& stream) {
  uint64_t copied = 0;
  for (size_t i = 0; i < in.size(); ++i) {
    if (is_fixed_[i]) {
      fixed_.push_back({i, in[i].view.data, strides_of(in[i])});
      continue;
    }
    Tensor place = empty_like(in[i], memory_.device);
    copied += place.bytes();
    Storage* const s = copied > kMostCopied ? nullptr : memory_.grow(stream, place.bytes());
    if (!s) return false;
    place.own(s);
    places_.push_back({i, std::move(place)});
  }
  return true;
}

void Capture::fill_places(const std::vector<Tensor>& in, Stream& stream) {
  for (Place& p : places_) copy_values(p.memory, in[p.input], stream);
}

// The operands are held by others, too: no node takes their memory.
void Capture::enqueue(const std::vector<Tensor>& in, Results& results) const {
  std::vector<const Tensor*> operands;
  std::vector<Tensor*> out;
  for (const Tensor& t : in) operands.push_back(&t);
  for (const Place& p : places_) operands[p.input] = &p.memory;
  for (Tensor& t : results.at) out.push_back(&t);
  replay(*executable_, operands.data(), out.data(), constants_.empty() ? nullptr : &constants_);
}

Capture::Output Capture::output_of(const Tensor& t, const std::vector<Tensor>& in) const {
  Output made{t};
  if (!t.device || !t.storage) return made;
  made.copied = memory_.owns(*t.storage);
  for (const Fixed& f : fixed_)
    if (!made.copied && in[f.input].storage == t.storage) made.input = int(f.input);
  if (made.input >= 0) made.tensor.drop_storage();
  return made;
}

Tensor Capture::result_of(const Output& output, const std::vector<Tensor>& in, Stream& stream) const {
  if (output.copied) {
    Tensor made = empty_like(output.tensor, memory_.device);
    made.own(allocate(memory_.device, memory_.device.index, stream, made.bytes()));
    copy_values(made, output.tensor, stream);
    return made;
  }
  Tensor made = output.tensor;
  if (output.input >= 0) {
    made.storage = in[size_t(output.input)].storage;
    retain(made.storage);
  }
  return made;
}

std::vector<Tensor> Capture::rehearse(const std::vector<Tensor>& in, std::string& why) {
  Stream& stream = current_stream(memory_.device);
  if (!make_places(in, stream)) {
    why = "inputs that are elsewhere in each call have more than " + human_bytes(kMostCopied) +
          " to copy, or more than captures may hold";
    return replay(*executable_, in, nullptr, constants_.empty() ? nullptr : &constants_);
  }
  fill_places(in, stream);
  Results results(memory_, executable_->binding.program->outputs.size());
  {
    Capturing run(memory_, stream, Capturing::rehearse);
    enqueue(in, results);
    launches_ = run.launches();
    why = run.refusal();
  }
  std::vector<Tensor> made;
  size_t copies = places_.size();
  for (const Tensor& t : results.at) {
    const Output output = output_of(t, in);
    made.push_back(result_of(output, in, stream));
    copies += output.copied;
  }
  if (why.empty() && launches_ <= copies + 1)
    why = "it has " + std::to_string(launches_) + " launches, and a replay would make " + std::to_string(copies) +
          " copies";
  return made;
}

void Capture::record(const std::vector<Tensor>& in) {
  Device& device = memory_.device;
  RecordingStream recording_stream(device);
  Stream& stream = recording_stream.stream();
  Results results(memory_, executable_->binding.program->outputs.size());
  device.check(functions_.begin(stream.handle), "[compile] the begin of a capture");
  try {
    Capturing run(memory_, stream, Capturing::record);
    enqueue(in, results);
  } catch (...) {
    functions_.end(stream.handle, nullptr);
    throw;
  }
  device.check(functions_.end(stream.handle, &graph_), "[compile] the end of a capture");
  for (const Tensor& t : results.at) outputs_.push_back(output_of(t, in));
}

std::vector<Tensor> Capture::run(const std::vector<Tensor>& in) {
  Device& device = memory_.device;
  Stream& stream = current_stream(device);
  memory_.use(stream);
  fill_places(in, stream);
  for (const Fixed& f : fixed_) use(*in[f.input].storage, stream, false);
  for (const Tensor& t : executable_->arrays)
    if (t.storage) use(*t.storage, stream, false);
  {
    const auto order = stream.lock();
    device.check(functions_.replay(graph_, stream.handle), "[compile] a replay");
  }
  std::vector<Tensor> made;
  for (const Output& output : outputs_) made.push_back(result_of(output, in, stream));
  return made;
}

bool Capture::fits(const std::vector<Tensor>& in, const std::vector<Scalar>* constants) const {
  return std::ranges::all_of(fixed_, [&](const Fixed& f) { return f.holds(in[f.input]); }) &&
         equal(constants_, or_none(constants));
}

bool Capture::is_lost() const { return resets_ != memory_.device.resets; }

std::string Capture::summary() const {
  const auto copied = std::ranges::count(outputs_, true, &Output::copied);
  return "captured: " + std::to_string(launches_) + " launches in one replay, which copies " +
         std::to_string(places_.size()) + " of " + std::to_string(is_fixed_.size()) + " inputs and " +
         std::to_string(copied) + " results and holds " + human_bytes(memory_.bytes());
}

// ---- a binding --------------------------------------------------------------------------------------------------

namespace {
thread_local const CapturedBinding* binding_in_use = nullptr;  // of this thread
class InUse {
 public:
  explicit InUse(const CapturedBinding* b) : before_(std::exchange(binding_in_use, b)) {}
  ~InUse() { binding_in_use = before_; }
  InUse(const InUse&) = delete;

 private:
  const CapturedBinding* const before_;
};

// All that there are, so that their memory can be had.
struct AllBindings {
  std::mutex mutex;
  std::vector<std::weak_ptr<CapturedBinding>> at;
};
AllBindings& all_bindings() {
  static AllBindings& all = *new AllBindings;
  return all;
}

bool free_all(Device& device) {
  std::vector<std::shared_ptr<CapturedBinding>> found;
  {
    const std::lock_guard lock(all_bindings().mutex);
    for (const auto& weak : all_bindings().at)
      if (auto b = weak.lock(); b && &b->executable->device() == &device) found.push_back(std::move(b));
  }
  bool any = false;
  for (const auto& b : found) any |= b->free_memory();
  return any;
}
const bool hooked = [] { return release_captures = free_all, true; }();
}  // namespace

std::vector<Tensor> CapturedBinding::run(std::vector<Tensor> in, const std::vector<Scalar>* constants) {
  std::optional<std::vector<Tensor>> made;
  std::string fault;
  if (!engine_choice && !debug_checks.load(std::memory_order_relaxed)) {  // a profile is a debug check, too
    const auto order = lock_unlocked(mutex_);
    const InUse inside(this);
    if (refusal_.empty()) made = run_captured(in, constants, fault);
  }
  if (!fault.empty()) on_warning(not_captured() + fault);  // without the lock: it may call the function
  return made ? std::move(*made) : replay(*executable, std::move(in), nullptr, constants);
}

std::optional<std::vector<Tensor>> CapturedBinding::run_captured(const std::vector<Tensor>& in,
                                                                 const std::vector<Scalar>* constants,
                                                                 std::string& fault) {
  watch(in, constants);
  if (capture_ && capture_->is_lost()) capture_.reset();
  if (capture_ && capture_->fits(in, constants)) return wait_ = 0, capture_->run(in);
  if (is_due()) return make(in, constants, fault);
  return std::nullopt;
}

void CapturedBinding::watch(const std::vector<Tensor>& in, const std::vector<Scalar>* constants) {
  inputs_.resize(in.size());
  for (size_t i = 0; i < in.size(); ++i) {
    Seen& seen = inputs_[i];
    if (!in[i].storage || !in[i].device) return refuse("an input is not in the device's memory");
    if (!seen.runs || !lies_at(in[i], seen.data, seen.strides))
      seen = {in[i].view.data, strides_of(in[i]), 0, seen.moved};
    seen.runs = std::min(seen.runs + 1, kAlike);
  }
  const std::vector<Scalar>& numbers = or_none(constants);
  if (!equal(numbers_, numbers)) numbers_ = numbers, alike_numbers_ = 0;
  alike_numbers_ = std::min(alike_numbers_ + 1, kAlike);
}

// A capture that does not fit is replaced when as many runs have not fitted as it takes to make one.
bool CapturedBinding::is_due() {
  if (!refusal_.empty()) return false;
  if (capture_ && !wait_) wait_ = kAlike;
  if (wait_) --wait_;
  return !wait_ && alike_numbers_ == kAlike;
}

std::vector<Tensor> CapturedBinding::make(const std::vector<Tensor>& in, const std::vector<Scalar>* constants,
                                          std::string& fault) {
  if (capture_)
    for (const Capture::Fixed& f : capture_->fixed()) inputs_[f.input].moved += !f.holds(in[f.input]);
  capture_.reset();
  std::vector<bool> fixed;
  for (const Seen& seen : inputs_) fixed.push_back(seen.runs == kAlike && seen.moved < kMostMoves);
  auto capture = std::make_unique<Capture>(executable, std::move(fixed), constants);
  std::string why;
  std::vector<Tensor> made = capture->rehearse(in, why);
  if (!why.empty()) return refuse(why), made;
  try {
    capture->record(in);
    capture_ = std::move(capture);
  } catch (const Error& e) {
    refuse(e.what());
    if (e.kind != ErrorKind::not_implemented) fault = e.what();
  }
  return made;
}

std::string CapturedBinding::not_captured() const {
  return "[compile] a function on " + executable->device().name + " is not captured: ";
}

void CapturedBinding::refuse(const std::string& why) {
  refusal_ = why;
  log(Log::dispatch, 3, not_captured() + why);
}

void CapturedBinding::give_up(const std::string& why) {
  const auto order = lock_unlocked(mutex_);
  capture_.reset();
  refusal_ = why;
}

bool CapturedBinding::free_memory() {
  if (binding_in_use == this) return false;
  const std::unique_lock order(mutex_, std::try_to_lock);
  if (!order || !capture_) return false;
  capture_.reset();
  refusal_ = "its memory was needed for arrays";
  return true;
}

std::string CapturedBinding::state() {
  const auto order = lock_unlocked(mutex_);
  if (capture_) return capture_->summary();
  if (!refusal_.empty()) return "not captured: " + refusal_;
  return "not captured yet: " + std::to_string(kAlike) + " runs with the same numbers are";
}

// ---- those of a function ----------------------------------------------------------------------------------------

std::shared_ptr<CapturedBinding> Captures::of(const std::shared_ptr<const Executable>& e) {
  std::vector<std::shared_ptr<CapturedBinding>> dropped;
  const auto made = [&] {
    const std::lock_guard lock(mutex_);
    const auto old =
        std::ranges::stable_partition(known_, [](const auto& b) { return is_current(*b->executable); });
    dropped.assign(old.begin(), old.end());
    known_.erase(old.begin(), old.end());
    const auto at = std::ranges::find(known_, e, [](const auto& b) { return b->executable; });
    if (at != known_.end()) {
      std::rotate(known_.begin(), at, at + 1);
      return known_.front();
    }
    if (known_.size() == kMost) dropped.push_back(std::move(known_.back())), known_.pop_back();
    return *known_.insert(known_.begin(), std::make_shared<CapturedBinding>(e));
  }();
  for (const auto& b : dropped) b->give_up("the function runs with many sizes, or its kernels have changed");
  const std::lock_guard lock(all_bindings().mutex);
  auto& all = all_bindings().at;
  std::erase_if(all, [&](const auto& weak) { return weak.expired() || weak.lock() == made; });
  all.push_back(made);
  return made;
}

std::string Captures::state_of(const Executable& e) {
  std::shared_ptr<CapturedBinding> found;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& b : known_)
      if (b->executable.get() == &e) found = b;
  }
  return found ? found->state() : std::string();
}

std::vector<std::string> Captures::states() {
  std::vector<std::shared_ptr<CapturedBinding>> known;
  {
    const std::lock_guard lock(mutex_);
    known = known_;
  }
  std::vector<std::string> texts;
  for (const auto& b : known) texts.push_back(b->state());
  return texts;
}
}  // namespace dovetail
