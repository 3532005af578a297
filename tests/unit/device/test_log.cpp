#include "device/log.hpp"

#include <unistd.h>

#include <cstdio>
#include <cstdlib>

#include "check.hpp"
#include "device/plugins.hpp"

using namespace plugins;

namespace {
// The text that `f` writes to stderr.
template <class F>
std::string logged(F f) {
  std::FILE* file = std::tmpfile();
  const int kept = dup(2);
  dup2(fileno(file), 2);
  f();
  dup2(kept, 2);
  close(kept);
  std::string text(size_t(std::ftell(file)), '\0');
  lseek(fileno(file), 0, SEEK_SET);
  char bytes[4096];
  text.clear();
  for (ssize_t n; (n = ::read(fileno(file), bytes, sizeof bytes)) > 0;) text.append(bytes, size_t(n));
  std::fclose(file);
  return text;
}
}  // namespace

TEST(levels) {
  set_logs("");
  CHECK(logs(Log::dispatch, 1) && !logs(Log::dispatch));
  set_logs("+dispatch,-loader, memory");
  CHECK(logs(Log::dispatch, 3));
  CHECK(!logs(Log::loader, 1));
  CHECK(logs(Log::memory, 2) && !logs(Log::memory, 3));
  CHECK(logs(Log::stream, 1) && !logs(Log::stream, 2));
  set_logs("+all,-plugin");
  CHECK(logs(Log::trace, 3) && !logs(Log::plugin, 1));
  CHECK_THROWS(Error, "[logs] no component 'dispach', did you mean 'dispatch'?", set_logs("+dispach"));
  CHECK(logs(Log::trace, 3));  // a misspelt level changes nothing
  set_logs("");
}

TEST(lines) {
  set_logs("memory");
  CHECK_EQ(logged([] { log(Log::memory, 2, "full"); }), "dovetail[memory] info: full\n");
  CHECK_EQ(logged([] { log(Log::memory, 1, "full"); }), "dovetail[memory] warning: full\n");
  CHECK_EQ(logged([] { log(Log::memory, 3, "full"); }), "");
  CHECK_EQ(logged([] { log(Log::stream, 2, "full"); }), "");
  set_logs("");
}

TEST(plugins_log_through_the_host) {
  const dvt_host* host = new_host("acme", "/acme.so", {"/a", "/b c"});
  CHECK_EQ(host->struct_size, sizeof(dvt_host));
  CHECK_EQ(std::string(host->library_path), "/acme.so");
  set_logs("+plugin,trace");
  CHECK_EQ(logged([&] { host->log(host, 2, "hot"); }), "dovetail[plugin] warning: acme: hot\n");
  CHECK_EQ(logged([&] { host->log(host, 0, "warm"); }), "dovetail[plugin] debug: acme: warm\n");
  CHECK_EQ(logged([&] { host->trace(host, 7, "add", 1000, 3500); }),
           "dovetail[trace] info: acme: add call 7: 2.500 us\n");
  // A plugin given by its path logs under its file's name until it has named itself.
  const dvt_host* by_path = new_host("", "/a/libzeta.so", {});
  CHECK_EQ(logged([&] { by_path->log(by_path, 2, "hot"); }), "dovetail[plugin] warning: libzeta: hot\n");
  rename_host(by_path, "zeta");
  CHECK_EQ(logged([&] { by_path->log(by_path, 2, "hot"); }), "dovetail[plugin] warning: zeta: hot\n");
  CHECK(logged([&] { host->fail(host, DVT_INTERNAL, 0, "x.c", 3, "bad"); }).find("status 5 at x.c:3: bad") !=
        std::string::npos);
  set_logs("");
  CHECK_EQ(logged([&] { host->log(host, 1, "quiet"); }), "");
  CHECK_THROWS(Error, "[add] bad", throw_status(DVT_INTERNAL, "[add]"));
  CHECK_THROWS(Error, "[add] the device failed with status 5", throw_status(DVT_INTERNAL, "[add]"));
  host->fail(host, DVT_INVALID, 0, "x.c", 3, "[add] its own words");
  try {
    throw_status(DVT_INVALID, "[add]");
  } catch (const Error& e) {
    CHECK_EQ(std::string(e.what()), "[add] its own words");
    CHECK(e.kind == ErrorKind::value);
  }
  CHECK_EQ(host->extension(host, "dovetail.capture", 1), static_cast<const void*>(nullptr));
  CHECK_EQ(host->extension(host, "dovetail.search", DVT_X_SEARCH + 1), static_cast<const void*>(nullptr));
  const auto search = static_cast<const char* const*>(host->extension(host, "dovetail.search", DVT_X_SEARCH));
  CHECK_EQ(std::string(search[0]), "/a");
  CHECK_EQ(std::string(search[1]), "/b c");
  CHECK(!search[2]);
  CHECK_EQ(host->num_threads(host), num_threads());
}

CHECK_MAIN
