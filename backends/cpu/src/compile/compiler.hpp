// The compiler of dovetail-cpu, dvt_compiler of abi.h: groups of nodes run tile by tile, with the inner loops of
// the kernels, so that no value between them goes to memory.
#pragma once
#include "dovetail/abi.h"
#include "table.hpp"

namespace dovetail::cpu {
// `table` lives as long as the process.
const dvt_compiler* compiler(const Table& table);
}  // namespace dovetail::cpu
