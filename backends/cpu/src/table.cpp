#include "table.hpp"

#include <cstring>
#include <new>

namespace dovetail::cpu {
namespace {
// The must-have ops; the conformance suite has the same list in the schema.
constexpr char must_haves[] =
    " copy astype full iota take scatter where add subtract multiply divide quotient maximum minimum equal less "
    "bitwise_and bitwise_or bitwise_xor bitwise_left_shift bitwise_right_shift floor sqrt exp log sin sum max "
    "matmul ";

bool is_must_have(const char* op) {
  if (std::strncmp(op, "dvt.", 4)) return false;
  const size_t n = std::strlen(op += 4);
  for (const char* at = must_haves; (at = std::strstr(at, op)); at += n)
    if (at[-1] == ' ' && at[n] == ' ') return true;
  return false;
}
}  // namespace

struct Table::Entry {
  dvt_kernel kernel;
  dvt_operand operands[];
};

void Table::add(const dvt_kernel& row) {
  if (must_ && !is_must_have(row.op)) return;
  const size_t bytes = sizeof(dvt_operand) * (row.n_in + row.n_out);
  auto* entry = static_cast<Entry*>(::operator new(sizeof(Entry) + bytes));  // lives as long as the process
  entry->kernel = row;
  std::memcpy(entry->operands, row.operands, bytes);
  entry->kernel.operands = entry->operands;
  rows_.push_back(&entry->kernel);
}

void Table::add_loop(const LoopRow& row) {
  if (!must_ || is_must_have(row.op)) loops_.push_back(row);
}
}  // namespace dovetail::cpu
