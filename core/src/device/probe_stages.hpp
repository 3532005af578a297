// The lines that dovetail-probe writes to stdout, one before each step, so that its caller knows where it ended;
// and its option.
#pragma once

namespace dovetail::probe {
inline constexpr char kStage[] = "stage ";
// Each completes the sentence "crashed with SIGSEGV ...".
inline constexpr char kOpening[] = "in its static constructors";
inline constexpr char kProbing[] = "in dvt_probe_v1";
inline constexpr char kAsking[] = "in dvt_backend_v1";
inline constexpr char kReading[] = "while its table was read";
inline constexpr char kCounting[] = "in device_count";
inline constexpr char kOpeningDevice[] = "in device_open";
inline constexpr char kReadingProps[] = "in device_props";
inline constexpr char kClosingDevice[] = "in device_close";
inline constexpr char kAskingPack[] = "in dvt_kernels_v1";
inline constexpr char kDone[] = "done";

inline constexpr char kPackOf[] = "--pack-of";
}  // namespace dovetail::probe
