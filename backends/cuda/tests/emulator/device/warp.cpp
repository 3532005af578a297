// Operations of warps: the lanes wait for each other, the last one works for all.
#include <bit>
#include <cstdio>

#include "device/multiprocessor.hpp"
#include "device/places.hpp"

namespace emulator {
namespace {
std::string hexadecimal(uint32_t mask) {
  char text[11];
  std::snprintf(text, sizeof text, "0x%08x", mask);
  return text;
}

std::string describe(const Deposit& d) {
  return std::string(d.name) + " of lanes " + hexadecimal(d.mask) + " at " + place(d.where);
}

bool same_operation(const Deposit& a, const Deposit& b) { return a.mask == b.mask && a.complete == b.complete; }
}  // namespace

void Multiprocessor::warp_operation(const Deposit& deposit) {
  const Thread& thread = *current_thread;
  Warp& warp = warps_[thread.number / 32];
  const uint32_t own = 1u << thread.lane();
  if (!(deposit.mask & own)) fail(thread, describe(deposit) + ": expected a mask with its own lane");
  // Threads that wait for this lane, or that it waits for, must be in the same operation.
  const uint32_t others = warp.waiting & deposit.mask;
  if (others || warp.awaited & own) {
    const Deposit& other = warp.deposits[std::countr_zero(others ? others : warp.waiting)];
    if (!same_operation(other, deposit))
      fail(thread, describe(deposit) + " while a lane of its warp is in " + describe(other));
  }
  warp.deposits[thread.lane()] = deposit;
  warp.waiting |= own;
  warp.awaited |= deposit.mask;
  complete_if_whole(warp, deposit.mask);
  wait(deposit.name, deposit.where);
}

// Lanes that have returned are not waited for, as on Volta and newer.
void Multiprocessor::complete_if_whole(Warp& warp, uint32_t mask) {
  if (mask & warp.alive & ~warp.waiting) return;
  const uint32_t lanes = mask & warp.waiting;
  const uint32_t first_thread = uint32_t(&warp - warps_.data()) * 32;
  const Deposit& first = warp.deposits[std::countr_zero(lanes)];
  for (uint32_t rest = lanes; rest; rest &= rest - 1) {
    const auto lane = uint32_t(std::countr_zero(rest));
    if (!same_operation(first, warp.deposits[lane]))
      fail(threads_[first_thread + lane],
           describe(warp.deposits[lane]) + " while a lane of its warp is in " + describe(first));
  }
  first.complete(Lanes(*this, warp, lanes, &threads_[first_thread]));
  warp.waiting &= ~lanes;
  warp.awaited &= ~mask;
  make_ready(warp, lanes);
}
}  // namespace emulator
