#include "platform/windows/access.hpp"

#include <cstddef>
#include <memory>
#include <vector>

namespace dovetail::platform {
namespace {
class Sid {  // of a user or a group
 public:
  explicit Sid(WELL_KNOWN_SID_TYPE type) : bytes_(SECURITY_MAX_SID_SIZE) {
    DWORD size = SECURITY_MAX_SID_SIZE;
    if (!CreateWellKnownSid(type, nullptr, bytes_.data(), &size)) bytes_.clear();
  }
  // Of this process's user.
  Sid() {
    HANDLE opened = nullptr;
    if (!OpenProcessToken(GetCurrentProcess(), TOKEN_QUERY, &opened)) return;
    const Handle token(opened);
    std::vector<std::byte> user(sizeof(TOKEN_USER) + SECURITY_MAX_SID_SIZE);
    DWORD size = 0;
    if (!GetTokenInformation(token.get(), TokenUser, user.data(), DWORD(user.size()), &size)) return;
    const PSID sid = reinterpret_cast<TOKEN_USER*>(user.data())->User.Sid;
    bytes_.resize(GetLengthSid(sid));
    CopySid(DWORD(bytes_.size()), bytes_.data(), sid);
  }
  PSID get() const { return const_cast<std::byte*>(bytes_.data()); }
  bool is(PSID other) const { return !bytes_.empty() && other && EqualSid(get(), other); }

 private:
  std::vector<std::byte> bytes_;
};

bool is_trusted(PSID sid) {
  static const Sid user, system(WinLocalSystemSid), administrators(WinBuiltinAdministratorsSid),
      owner(WinCreatorOwnerRightsSid), creator(WinCreatorOwnerSid);
  for (const Sid* known : {&user, &system, &administrators, &owner, &creator})
    if (known->is(sid)) return true;
  return false;
}
bool is_everybody(PSID sid) {
  static const Sid world(WinWorldSid), authenticated(WinAuthenticatedUserSid), users(WinBuiltinUsersSid);
  return world.is(sid) || authenticated.is(sid) || users.is(sid);
}

constexpr DWORD kRead = FILE_READ_DATA | GENERIC_READ | GENERIC_ALL;
constexpr DWORD kWrite = FILE_WRITE_DATA | FILE_APPEND_DATA | FILE_DELETE_CHILD | DELETE | WRITE_DAC | WRITE_OWNER |
                         GENERIC_WRITE | GENERIC_ALL;

void add(const ACCESS_ALLOWED_ACE& entry, Access& access) {
  const PSID sid = const_cast<DWORD*>(&entry.SidStart);
  if (is_trusted(sid)) return;
  access.read_by_others |= (entry.Mask & kRead) != 0;
  access.written_by_others |= (entry.Mask & kWrite) != 0;
  access.written_by_all |= (entry.Mask & kWrite) != 0 && is_everybody(sid);
}
}  // namespace

// Entries that deny are left out: they only make the result more careful.
Access access_of(HANDLE file) {
  Access access;
  PSID owner = nullptr;
  PACL list = nullptr;
  PSECURITY_DESCRIPTOR all = nullptr;
  if (GetSecurityInfo(file, SE_FILE_OBJECT, OWNER_SECURITY_INFORMATION | DACL_SECURITY_INFORMATION, &owner, nullptr,
                      &list, nullptr, &all))
    return access;
  const std::unique_ptr<void, decltype(&LocalFree)> freed(all, LocalFree);
  access.own = is_trusted(owner);
  access.written_by_all = !list;  // without a list everybody may do everything
  if (!list) return access;
  access.read_by_others = access.written_by_others = false;
  for (WORD i = 0; i < list->AceCount; ++i) {
    void* entry = nullptr;
    if (!GetAce(list, i, &entry)) continue;
    const ACE_HEADER& header = *static_cast<ACE_HEADER*>(entry);
    if (header.AceType == ACCESS_ALLOWED_ACE_TYPE && !(header.AceFlags & INHERIT_ONLY_ACE))
      add(*static_cast<ACCESS_ALLOWED_ACE*>(entry), access);
  }
  return access;
}

OnlyUs::OnlyUs() {
  const Sid user;
  wchar_t* name = nullptr;
  if (!ConvertSidToStringSidW(user.get(), &name)) return;
  // What is made in a folder inherits its entries; what the folder itself would inherit is left out.
  const std::wstring rights = L"D:P(A;OICI;FA;;;" + std::wstring(name) + L")(A;OICI;FA;;;SY)(A;OICI;FA;;;BA)";
  LocalFree(name);
  attributes_.nLength = sizeof attributes_;
  if (!ConvertStringSecurityDescriptorToSecurityDescriptorW(rights.c_str(), SDDL_REVISION_1,
                                                            &attributes_.lpSecurityDescriptor, nullptr))
    attributes_.lpSecurityDescriptor = nullptr;
}
OnlyUs::~OnlyUs() {
  if (attributes_.lpSecurityDescriptor) LocalFree(attributes_.lpSecurityDescriptor);
}
}  // namespace dovetail::platform
