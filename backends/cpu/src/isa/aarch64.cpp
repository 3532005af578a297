// aarch64, by Linux's auxiliary vector.
#include <asm/hwcap.h>
#include <sys/auxv.h>

#include <cstdint>
#include <cstdio>

#include "isa.hpp"

namespace dovetail::cpu {
namespace {
struct Part {
  uint32_t implementer, part;
  const char* name;
};
constexpr Part parts[] = {
    {0x41, 0xd03, "Arm Cortex-A53"},  {0x41, 0xd07, "Arm Cortex-A57"},  {0x41, 0xd08, "Arm Cortex-A72"},
    {0x41, 0xd0b, "Arm Cortex-A76"},  {0x41, 0xd0c, "Arm Neoverse N1"}, {0x41, 0xd40, "Arm Neoverse V1"},
    {0x41, 0xd49, "Arm Neoverse N2"}, {0x41, 0xd4f, "Arm Neoverse V2"}, {0x41, 0xd84, "Arm Neoverse V3"},
    {0x41, 0xd8e, "Arm Neoverse N3"}, {0x46, 0x001, "Fujitsu A64FX"},   {0xc0, 0xac3, "Ampere AmpereOne"},
};

// MIDR_EL1, which Linux emulates for user space if it sets HWCAP_CPUID.
void read_name(Features& f, unsigned long has) {
  std::snprintf(f.name, sizeof f.name, "aarch64");
  if (!(has & HWCAP_CPUID)) return;
  uint64_t identity;
  __asm__("mrs %0, MIDR_EL1" : "=r"(identity));
  const uint32_t implementer = identity >> 24 & 0xff, part = identity >> 4 & 0xfff;
  std::snprintf(f.name, sizeof f.name, "aarch64, implementer 0x%02x, part 0x%03x", implementer, part);
  for (const Part& p : parts)
    if (p.implementer == implementer && p.part == part) std::snprintf(f.name, sizeof f.name, "%s", p.name);
}
}  // namespace

Features read_features() {
  const unsigned long has = getauxval(AT_HWCAP), has2 = getauxval(AT_HWCAP2);
  constexpr unsigned long needed = HWCAP_ASIMDDP | HWCAP_FPHP | HWCAP_ASIMDHP;
  Features f;
  read_name(f, has);
  f.bf16_products = has2 & HWCAP2_BF16;
  f.sve_int8 = has2 & HWCAP2_SVEI8MM;
  f.level = (has & needed) == needed && f.bf16_products ? Level::neon_bf16 : Level::baseline;
  f.add_extra("asimddp", has & HWCAP_ASIMDDP);
  f.add_extra("fp16", has & HWCAP_ASIMDHP);
  f.add_extra("bf16", f.bf16_products);
  f.add_extra("i8mm", has2 & HWCAP2_I8MM);
  f.add_extra("sve", has & HWCAP_SVE);
  f.add_extra("sve2", has2 & HWCAP2_SVE2);
  return f;
}

std::span<const LevelName> level_names() {
  static constexpr LevelName names[] = {{"default", "armv8-a"}, {"neon_bf16", "armv8.2-a (neon_bf16)"}};
  return names;
}
}  // namespace dovetail::cpu
