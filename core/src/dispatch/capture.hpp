// Bindings of a compiled function as one replay each of the device's graph (dvt_capture).
#pragma once
#include <mutex>
#include <optional>

#include "device/capturing.hpp"
#include "dispatch/replay.hpp"

namespace dovetail {
const dvt_capture* capture_of(const Device&);  // nullptr: it does not capture

// One recorded run. Its caller sees to it that no two threads are in here.
class Capture {
 public:
  // Where an input lay in the run that was recorded: its kernels have that address.
  struct Fixed {
    size_t input;
    const void* data;
    std::vector<int64_t> strides;
    bool holds(const Tensor&) const;
  };
  // `fixed`: of each input whether it is read where it is; others are copied into the capture's memory.
  Capture(std::shared_ptr<const Executable>, std::vector<bool> fixed, const std::vector<Scalar>* constants);
  ~Capture();
  Capture(const Capture&) = delete;

  // An uncaptured run in the capture's memory. `why` says afterwards why it cannot be captured, where it cannot.
  std::vector<Tensor> rehearse(const std::vector<Tensor>& in, std::string& why);
  void record(const std::vector<Tensor>& in);  // throws Error where that fails
  std::vector<Tensor> run(const std::vector<Tensor>& in);

  bool fits(const std::vector<Tensor>& in, const std::vector<Scalar>* constants) const;
  bool is_lost() const;  // the device was reset
  const std::vector<Fixed>& fixed() const { return fixed_; }
  std::string summary() const;

 private:
  struct Place {
    size_t input;
    Tensor memory;
  };
  // A result of the recorded run: to be copied, or of an input's or the program's memory.
  struct Output {
    Tensor tensor;  // without storage where it lies in an input
    int input = -1;
    bool copied = false;
  };
  class Results;
  bool make_places(const std::vector<Tensor>& in, Stream&);
  void enqueue(const std::vector<Tensor>& in, Results&) const;
  void fill_places(const std::vector<Tensor>& in, Stream&);
  Output output_of(const Tensor&, const std::vector<Tensor>& in) const;
  Tensor result_of(const Output&, const std::vector<Tensor>& in, Stream&) const;

  const std::shared_ptr<const Executable> executable_;
  const dvt_capture& functions_;
  const std::vector<Scalar> constants_;  // empty: those of the binding
  const uint64_t resets_;
  CaptureMemory memory_;
  std::vector<bool> is_fixed_;
  std::vector<Fixed> fixed_;
  std::vector<Place> places_;
  std::vector<Output> outputs_;
  size_t launches_ = 0;
  dvt_graph* graph_ = nullptr;
};

// The runs of one binding: captured after a few that were alike.
class CapturedBinding {
 public:
  explicit CapturedBinding(std::shared_ptr<const Executable> e) : executable(std::move(e)) {}
  const std::shared_ptr<const Executable> executable;

  // As dovetail::replay(), from any thread.
  std::vector<Tensor> run(std::vector<Tensor> in, const std::vector<Scalar>* constants);
  void give_up(const std::string& why);  // frees the capture; there will be no other
  bool free_memory();                    // the same, where no thread is in it
  std::string state();                   // for the user

 private:
  struct Seen {  // of an input in the last runs
    const void* data = nullptr;
    std::vector<int64_t> strides;
    int runs = 0;   // alike in so many runs up to the last one
    int moved = 0;  // so many captures ended as it was elsewhere
  };
  void watch(const std::vector<Tensor>& in, const std::vector<Scalar>* constants);
  bool is_due();
  // With the lock. Nothing: the run is to be an uncaptured one. `fault`: why a capture failed that should not.
  std::optional<std::vector<Tensor>> run_captured(const std::vector<Tensor>& in,
                                                  const std::vector<Scalar>* constants, std::string& fault);
  std::vector<Tensor> make(const std::vector<Tensor>& in, const std::vector<Scalar>* constants, std::string& fault);
  std::string not_captured() const;
  void refuse(const std::string& why);

  std::mutex mutex_;
  std::unique_ptr<Capture> capture_;
  std::vector<Seen> inputs_;
  std::vector<Scalar> numbers_;
  static constexpr int kAlike = 3;  // so many runs are captured
  int alike_numbers_ = 0;
  int wait_ = kAlike;    // runs until the next capture
  std::string refusal_;  // why it is not captured
};

// Those of one compiled function, the most recent ones.
class Captures {
 public:
  std::shared_ptr<CapturedBinding> of(const std::shared_ptr<const Executable>&);
  // What the binding says of itself.
  std::string state_of(const Executable&);
  std::vector<std::string> states();

 private:
  static constexpr size_t kMost = 8;
  std::mutex mutex_;
  std::vector<std::shared_ptr<CapturedBinding>> known_;  // the last used one first
};
}  // namespace dovetail
