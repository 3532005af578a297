// A group as a list of instructions on tiles. A tile is part of one row of the index space, or several whole rows.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "dovetail/codegen.hpp"
#include "isa.hpp"
#include "loops.hpp"
#include "table.hpp"

namespace dovetail::cpu {
constexpr int64_t tile_elements = Reduction::run_length;
constexpr uint32_t nowhere = UINT32_MAX;
constexpr size_t most_values = 256, most_in_memory = 64;  // of a group; of its inputs and of its outputs

// How many elements of a value a tile has.
enum class Extent : uint8_t {
  one /* for the whole group */,
  rows /* one per row */,
  all,
  columns /* one per column */
};

struct Operand {  // a value of the group
  DLDataType type;
  Extent extent;
  uint8_t bytes;  // of an element in a tile: float of fp16 and bf16
  Half half;
  dvt::codegen::Value::Source source;
  uint32_t index;          // which input, number or step
  int32_t first_axis;      // of the index space: that of the value's axis 0
  uint32_t kept;           // its row of scratch memory, or nowhere
  uint32_t row = nowhere;  // of Extent::rows: which of these
  uint64_t value = 0;      // of a constant, as it is in memory
};

struct Instruction {
  enum Kind : uint8_t { load, loop, reduce /* a row */, reduce_columns, generated };
  Kind kind = load;
  uint32_t result = nowhere;  // of `generated`: which loop of the group
  const char* op = nullptr;   // in the schema
  const Elementwise* elementwise = nullptr;
  const Reduction* reduction = nullptr;
  uint32_t n_in = 0;
  uint32_t in[max_elementwise_in] = {};
  uint32_t absent = 0;  // as in LoopRow
  bool rounds = false;  // to fp16 or bf16, after the loop
  uint32_t state = 0;   // which reduction of the group: of those of rows, or of those of columns
};

// The instructions of one pass. `place[v]`: the register of value v in it, or nowhere. `is_half[v]`: the register
// has fp16 or bf16, as they are in memory, and not float.
struct Pass {
  std::vector<Instruction> before;  // of values of one element a row
  std::vector<Instruction> body;
  std::vector<uint32_t> place;
  std::vector<bool> is_half;
  int64_t n_long = 0;          // instructions of `body` that are
  std::vector<uint32_t> made;  // values of all elements that it makes, loads or has kept rows of
};

// A run of instructions on values of all elements, for which there can be machine code. `in` and `out`: the values
// that it reads from tiles, and those that others need. `is_half`: as in its pass. `calls`: the vector functions
// that the code calls, each once.
struct GeneratedLoop {
  std::vector<Instruction> steps;
  std::vector<uint32_t> in, out;
  std::vector<bool> is_half;
  std::vector<const void*> calls;
};
// Values of rows and of one element stay where they are; the others are dense in rows * columns elements. Behind
// the values, `in` has the functions that the code calls.
using GeneratedFunction = void (*)(const void* const* in, void* const* out, int64_t rows, int64_t columns);

struct Schedule {
  std::vector<Pass> passes;  // for rows longer than a tile
  Pass whole;                // for tiles of whole rows: all of it in one
};

struct Group {
  std::vector<int64_t> space;  // sizes; -1 - s: a symbol
  std::vector<Operand> values;
  std::vector<Instruction> once;     // of values of one element
  Schedule plain;                    // a loop for each instruction
  Schedule joined;                   // the same with generated loops
  std::vector<GeneratedLoop> loops;  // of `joined`
  std::vector<uint32_t> outputs;     // values
  std::vector<uint32_t> row_inputs;  // values that are inputs of one element a row
  std::vector<Instruction> totals;   // those that reduce columns
  uint32_t n_inputs = 0, n_kept = 0, n_registers = 0, n_rows = 0, n_reductions = 0;
  uint64_t in_place_of_rows = 0, in_place_of_passes = 0;  // dvt_answer.in_place, for each kind of tile
  bool flat = false;                                      // is_flat()
  bool as_eager = false;                                  // all bits are to be those of node by node
  uint8_t widest = 1;                                     // bytes of an element in a tile
  bool has_reductions() const { return n_reductions > 0 || !totals.empty(); }
};

// Does it compute with all elements of a tile?
inline bool is_long(const Group& g, const Instruction& step) {
  return step.kind >= Instruction::reduce ||
         (step.kind == Instruction::loop && g.values[step.result].extent == Extent::all);
}

// The loop or reduction for a node; nullptr where there is none.
class LoopTable {
 public:
  explicit LoopTable(const Table&);
  const LoopRow* find(const dvt_program&, const dvt_node&) const;

 private:
  std::vector<const LoopRow*> rows_;  // by op
};

// Gives every value that has a place in the pass a register, from where it is made to its last use. Results of the
// group keep theirs to the end, where they are stored.
void allocate(Group&, Pass&);

// nullptr, or why the program is no group of tiles.
const char* translate(const LoopTable&, const dvt_program&, Group& out);

// nullptr, or why these sizes are not served.
const char* refuses(const Group&, const dvt_exe_call&);
// Outputs that may be the memory of an input, as dvt_answer says it.
uint64_t in_place(const Group&, const dvt_exe_call&);
// With `functions`, one for each of the group's generated loops, the bits are those of nullptr.
dvt_status run(const Group&, const Conversions&, const GeneratedFunction* functions, const dvt_exe_call&);

// Whether run_flat() may take it: it is elementwise, without fp16 and bf16.
bool is_flat(const Group&);
// As run(), for few elements, all row-major and of one shape but for single ones.
enum class FlatRun : uint8_t { done, declined, no_memory };
FlatRun run_flat(const Group&, const GeneratedFunction* functions, const dvt_exe_call&);

// Makes `joined` and `loops` from `plain`: runs of the instructions that generated code of the level can do.
void join(Group&, Level);
}  // namespace dovetail::cpu
