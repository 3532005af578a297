// The last error of each thread.
#include <new>
#include <string>

#include "api/api.hpp"
#include "device/interpreter.hpp"

namespace dovetail::api {
namespace {
struct LastError {
  dvr_status kind = DVR_OK;
  std::string message, cure, op;
};
LastError& last_error() {
  static thread_local LastError error;
  return error;
}

dvr_status status_of(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::type: return DVR_TYPE;
    case ErrorKind::value:
    case ErrorKind::axis:
    case ErrorKind::overflow:
    case ErrorKind::no_file:
    case ErrorKind::is_folder:
    case ErrorKind::buffer: return DVR_VALUE;
    case ErrorKind::index: return DVR_INDEX;
    case ErrorKind::memory: return DVR_MEMORY;
    case ErrorKind::not_implemented: return DVR_NOT_IMPLEMENTED;
    case ErrorKind::device_lost: return DVR_DEVICE_LOST;
    case ErrorKind::no_permission:
    case ErrorKind::file:
    case ErrorKind::runtime: break;
  }
  return DVR_RUNTIME;
}

dvr_status keep(dvr_status kind, const char* function, const char* text, const char* cure) noexcept {
  LastError& e = last_error();
  e.kind = kind;
  try {
    e.message = text[0] == '[' ? text : std::string("[") + function + "] " + text;
    e.cure = cure;
    const size_t end = e.message.find(']');
    e.op = end == std::string::npos ? "" : e.message.substr(1, end - 1);
  } catch (const std::bad_alloc&) {
    e.message.clear(), e.cure.clear(), e.op.clear();
  }
  return kind;
}
}  // namespace

dvr_status keep_error(const char* function) noexcept {
  try {
    throw;
  } catch (const Interrupt&) {
    return keep(DVR_INTERRUPTED, function, "Ctrl-C interrupted the wait", "");
  } catch (const Error& e) {
    return keep(status_of(e.kind), function, e.what(), e.cure.c_str());
  } catch (const std::bad_alloc&) {
    return keep(DVR_MEMORY, function, "the host is out of memory", "");
  } catch (const std::exception& e) {
    return keep(DVR_RUNTIME, function, e.what(), "");
  } catch (...) {
    return keep(DVR_RUNTIME, function, "an unknown error", "");
  }
}

void throw_null(const char* what) {
  throw Error(ErrorKind::value, std::string(what) + " is NULL: expected a pointer");
}
}  // namespace dovetail::api

using namespace dovetail::api;

uint32_t dvr_version(void) { return DVR_VERSION; }

void dvr_last_error(dvr_error_info* out) {
  if (!out || out->struct_size < sizeof(uint32_t)) return;
  const LastError& e = last_error();
  put_info({0, e.kind, e.message.c_str(), e.cure.c_str(), e.op.c_str()}, out);
}
