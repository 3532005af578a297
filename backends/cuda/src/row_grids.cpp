#include "row_grids.hpp"

#include <bit>

namespace gpu {
namespace {
constexpr uint64_t elements_of_thread = 4;    // of a column at least
constexpr uint64_t enough_threads = 1 << 17;  // half of what a large GPU holds: more gain little

// Columns side by side of a block: a warp of them, and no more than there are, while rows are long enough for
// threads above one another.
struct Tile {
  uint64_t columns, threads;  // powers of two

  uint64_t blocks_along(uint64_t all) const { return (all + columns - 1) / columns; }
};
Tile tile_of_columns(const ReductionPlan& how, uint32_t most) {
  const uint64_t all = std::bit_ceil(how.axis[how.kept - 1].size.value);
  const uint64_t wanted = std::bit_ceil(std::max<uint64_t>(how.part / elements_of_thread, 1));
  const uint64_t threads = std::min({wanted, block_size / std::min<uint64_t>(all, 32), uint64_t{most}});
  return {std::min(all, block_size / threads), threads};
}
uint64_t blocks_of(const ReductionPlan& how, const Tile& tile) {
  const uint64_t columns = how.axis[how.kept - 1].size.value;
  return how.count / columns * tile.blocks_along(columns);
}
}  // namespace

LongDivisor divide_by(uint64_t n) {
  __extension__ using Wide = unsigned __int128;
  const uint64_t by = std::max<uint64_t>(n, 1);
  const auto shift = uint32_t(std::bit_width(by - 1));
  return {n, uint64_t(((Wide{1} << (63 + shift)) + by - 1) / by), shift};
}

void make_whole(ReductionPlan& how) { how.parts = divide_by(1), how.part = how.size; }

ReductionPlan plan_rows(uint64_t rows, uint64_t size) {
  ReductionPlan how{};
  how.count = rows, how.size = size, how.kept = how.along = 1;
  how.axis[0] = {divide_by(rows), {int64_t(size), int64_t(size)}};
  how.axis[1] = {divide_by(size), {1, 1}};
  make_whole(how);
  return how;
}

void cut(ReductionPlan& how, uint64_t parts, uint64_t whole) {
  how.part = (how.size + parts - 1) / parts;
  how.part = (how.part + whole - 1) / whole * whole;
  how.parts = divide_by(how.size ? (how.size + how.part - 1) / how.part : 1);
}

bool is_packed(const ReductionPlan& how, uint32_t bytes, std::initializer_list<const void*> operands) {
  const auto whole = [&](int64_t elements) { return elements * int64_t(bytes) % pack_bytes == 0; };
  if (how.along > 1 || how.axis[how.kept].stride[0] != 1 || how.axis[how.kept].stride[1] != 1) return false;
  for (uint32_t a = 0; a < how.kept; ++a)
    if (!whole(how.axis[a].stride[0]) || !whole(how.axis[a].stride[1])) return false;
  return whole(int64_t(how.size)) && std::ranges::all_of(operands, [](const void* p) {
           return reinterpret_cast<uintptr_t>(p) % pack_bytes == 0;
         });
}

Grid grid_of_reduction_rows(ReductionPlan& how, uint64_t each, uint32_t most, uint32_t packs) {
  constexpr uint64_t segment = 8;  // threads whose packs fill a cache line
  const uint64_t all = std::bit_ceil(std::max<uint64_t>((how.part + each - 1) / each, 1));
  how.chunks = how.count * how.parts.value;
  uint64_t threads = std::min<uint64_t>(std::max(all / packs, std::min(all, segment)), most);
  while (threads < std::min<uint64_t>(all, most) && how.chunks * threads < enough_threads) threads *= 2;
  how.threads = uint32_t(threads);
  // Whole warps; more than one is one row's alone.
  const uint64_t block = threads > 32 ? threads : std::clamp<uint64_t>(how.chunks * threads, 32, block_size);
  const uint64_t at_once = std::bit_ceil(block) / threads;
  return grid_of_blocks((how.chunks + at_once - 1) / at_once, uint32_t(at_once * threads));
}

uint64_t blocks_of_columns(const ReductionPlan& how) { return blocks_of(how, tile_of_columns(how, block_size)); }
Grid grid_of_columns(ReductionPlan& how, uint32_t most) {
  const Tile tile = tile_of_columns(how, most);
  how.threads = uint32_t(tile.threads);
  how.blocks = divide_by(tile.blocks_along(how.axis[how.kept - 1].size.value));
  how.chunks = blocks_of(how, tile) * how.parts.value;
  return grid_of_blocks(how.chunks, uint32_t(tile.columns * tile.threads));
}
}  // namespace gpu
