// Opening a library that this machine has not seen in a child process first, so that a crash stays there.
#pragma once
#include <string>
#include <vector>

namespace dovetail {
struct Backend;

// Throws Error(runtime) "cause; cure" where the child crashed, hung or left. What a library did not do is
// remembered until the machine starts again; what the library answered is not: the caller asks it again.
// `pack_of`: the library is a kernel pack for it; nullptr: a backend.
void try_in_child(const std::string& name, const std::string& library, const std::vector<std::string>& search,
                  const Backend* pack_of);
}  // namespace dovetail
