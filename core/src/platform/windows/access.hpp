// Who may read and write a file.
#pragma once
#include <string>

#include "platform/windows/windows.hpp"

namespace dovetail::platform {
struct Access {
  bool own = false;               // it belongs to this user, or to the administrators, who may do everything
  bool read_by_others = true;     // by anybody but this user, the system and the administrators
  bool written_by_others = true;  // or removed, or given other rights
  bool written_by_all = false;    // by every user of the machine
};
Access access_of(HANDLE file);

class OnlyUs {  // the rights of a new file or folder that only this user can read or write
 public:
  OnlyUs();
  ~OnlyUs();
  OnlyUs(const OnlyUs&) = delete;
  SECURITY_ATTRIBUTES* attributes() { return attributes_.lpSecurityDescriptor ? &attributes_ : nullptr; }

 private:
  SECURITY_ATTRIBUTES attributes_{};
};
}  // namespace dovetail::platform
