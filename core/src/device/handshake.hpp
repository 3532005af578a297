// Checks of a plugin's table before any of it is used. Each throws Error(runtime) with a cure.
#pragma once
#include <string>

#include "device/backend.hpp"

namespace dovetail {
[[noreturn]] void refuse(const std::string& cause,
                         const std::string& cure = "this is an error in the plugin: report it to its author");
// `name`: as registered; "" takes the table's own, which is returned.
std::string check_table(const dvt_backend* table, const std::string& name);
std::string check_pack(const dvt_kernel_pack* pack, const std::string& name);
void check_props(dvt_props& props);
// The cure where plugin and runtime were built for different versions of the protocol.
std::string cure_for_versions(const std::string& name);
}  // namespace dovetail
