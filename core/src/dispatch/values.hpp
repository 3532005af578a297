// The values of one run of a program.
#pragma once
#include "dispatch/replay.hpp"
#include "spare.hpp"

namespace dovetail {
// Values of a run's own are in memory that the thread keeps for its next run. Others are lent: they are read where
// they are, no node takes their memory, and they outlive the run.
class Values {
 public:
  // Without memory, but for the program's constants and arrays. `constants`: nullptr for those of the binding.
  explicit Values(const Executable&, const std::vector<Scalar>* constants = nullptr);
  // With the program's inputs, lent. Where `makes_outputs`, they are made in `out`.
  Values(const Executable&, const Tensor* const* in, Tensor* const* out, const std::vector<Scalar>* constants);
  // With the program's inputs, its own.
  Values(const Executable&, std::vector<Tensor> in, const std::vector<Scalar>* constants);
  Values(const Values&);
  Values& operator=(const Values&) = delete;
  ~Values();

  const Tensor& operator[](int v) const { return *memory_->at[size_t(v)]; }
  bool is_own(int v) const {
    return size_t(v) >= n_lent_ && memory_->at[size_t(v)] == &memory_->own[size_t(v) - n_lent_];
  }
  // Of a node's result, or another value that is the run's own.
  Tensor& own(int v) { return *memory_->at[size_t(v)]; }
  // No node needs it any more.
  void end(int v) {
    if (is_own(v)) own(v).drop_storage();
  }

 private:
  struct Memory {
    std::vector<Tensor> own;  // of values behind the first n_lent_; those that no run uses are of any types
    std::vector<Tensor*> at;  // lent ones are not changed
  };
  void make_room();
  void lend(int v, const Tensor& t) { memory_->at[size_t(v)] = const_cast<Tensor*>(&t); }
  void set_constants(const Executable&, const std::vector<Scalar>* constants);

  const size_t n_, n_lent_;  // all, and how many of the first ones are lent
  Spare<Memory> memory_;
};

// A result that is computed where the caller wants it, if what computes it can write there.
struct Wanted {
  int value;
  const Tensor* memory;
};
}  // namespace dovetail
