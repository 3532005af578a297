// Kernel rows by device and name.
#pragma once
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "device/backend.hpp"

namespace dovetail {
inline std::string_view engine_of(const dvt_kernel& row) { return row.engine ? row.engine : kOwnEngine; }
// Kernel rows of a device for "dvt.softmax", in the order in which they are tried.
std::vector<const dvt_kernel*> kernel_rows(const Device&, const std::string& kernel_name);
// All rows of a device: those added at run time, then its backend's table.
std::vector<const dvt_kernel*> kernel_table(const Device&);
// Throws Error(runtime) where the row asks for what no row may ask of this device.
void check_row(const dvt_kernel&, const Device&);
// Held while the process forks, as the locks of ops and plans: survive_forks() arranges that, once.
void lock_rows();
void unlock_rows();
void survive_forks();
// Adds rows to a device at run time, tried in this order before the rows it has. They live as long as the process.
void add_kernels(Device&, std::span<const dvt_kernel* const>);
inline void add_kernel(Device& device, const dvt_kernel* row) { add_kernels(device, {&row, 1}); }
}  // namespace dovetail
