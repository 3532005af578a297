// The libraries that load_backend accepts, and its errors for the others.
#include <sys/wait.h>

#include <algorithm>
#include <csignal>
#include <fstream>
#include <sstream>
#include <system_error>

#include "check.hpp"
#include "device/plugins.hpp"

using namespace plugins;

namespace {
std::string text_of(const std::string& file) {
  std::ifstream in(file);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}
size_t lines_of(const std::string& file) {
  const std::string text = text_of(file);
  return size_t(std::count(text.begin(), text.end(), '\n'));
}

// Every refusal has a cure.
bool refuses(const std::string& plugin, const std::string& cause, const std::string& cure, int line) {
  try {
    load(plugin);
  } catch (const Error& e) {
    const std::string text = e.what();
    const bool ok = e.kind == ErrorKind::runtime && !e.cure.empty() && text.ends_with("; " + e.cure) &&
                    text.find(cause) < text.size() - e.cure.size() && e.cure.find(cure) != std::string::npos;
    return check::that(ok, __FILE__, line,
                       plugin + " is refused with '" + text + "', expected '" + cause + "' ; '" + cure + "'");
  }
  return check::that(false, __FILE__, line, plugin + " is accepted");
}
#define REFUSES(plugin, cause, cure) refuses(plugin, cause, cure, __LINE__)
constexpr char kAuthor[] = "report it to its author";
constexpr char kMatch[] = "built for dovetail 0.";
}  // namespace

TEST(a_sound_plugin) {
  Backend& backend = load("sound");
  CHECK_EQ(backend.name, "sound");
  CHECK_EQ(backend.devices.size(), 2u);
  CHECK_EQ(backend.devices[1]->name, "sound:1");
  CHECK_EQ(find_device("sound"), backend.devices[0]);
  CHECK_EQ(find_device("sound:1"), backend.devices[1]);
  CHECK_EQ(find_device("sound:2"), static_cast<Device*>(nullptr));
  CHECK_EQ(&load("sound"), &backend);
  CHECK_EQ(&load_backend("", path("sound"), {}), &backend);
}

TEST(a_name_from_the_plugin_itself) {
  CHECK_EQ(load_backend("", path("queue"), {}).name, "queue");
  CHECK(!find_device("queue")->synchronous);
}

TEST(a_library_that_did_not_crash_is_remembered) {
  load("minimal");
  const std::string file = cache() + "/dovetail/probed";
  const size_t lines = lines_of(file);
  CHECK(lines >= 2);
  REFUSES("probe_says_no", "", "");  // it did not crash
  CHECK_EQ(lines_of(file), lines + 1);
  REFUSES("probe_crashes", "", "");
  CHECK_EQ(lines_of(file), lines + 1);
  REFUSES("probe_says_no", "", "");
  CHECK_EQ(lines_of(file), lines + 1);

  std::string text = text_of(file);
  text.replace(0, text.find('\n'), "an earlier start of the machine");
  std::ofstream(file) << text;
  REFUSES("probe_says_no", "", "");
  CHECK_EQ(lines_of(file), 2u);
}

TEST(a_cache_that_cannot_be_written) {
  setenv("XDG_CACHE_HOME", "/proc/nowhere", 1);
  REFUSES("probe_says_no", "no frobnicator", "");
  setenv("XDG_CACHE_HOME", cache().c_str(), 1);
}

TEST(libraries_that_cannot_be_opened) {
  CHECK_THROWS(Error, "expected an absolute path; ", load_backend("x", "libx.so", {}));
  CHECK_THROWS(Error, "there is no file /nowhere/libx.so; reinstall dovetail-x",
               load_backend("x", "/nowhere/libx.so", {}));
  CHECK_THROWS(Error, "it cannot be opened: ", load_backend("x", cache() + "/dovetail/probed", {}));
  const std::string foreign = cache() + "/foreign.so";
  std::string program = text_of(path("minimal"));
  program[18] = char(0xf3);  // e_machine: RISC-V
  std::ofstream(foreign, std::ios::binary) << program;
  CHECK_THROWS(Error, foreign + " is built for another kind of processor; reinstall dovetail-x",
               load_backend("x", foreign, {}));
  REFUSES("unresolved", "undefined symbol: nobody_has_this_function", "reinstall or update dovetail-unresolved");
}

TEST(libraries_that_a_plugin_needs) {
  REFUSES("needy", "libneeded.so: cannot open shared object file", "name its folder");
  const std::string folder = std::filesystem::path(path("needy")).parent_path() / "needed";
  CHECK_EQ(load_backend("needy", path("needy"), {"/nowhere", folder}).devices.size(), 2u);
}

TEST(plugins_of_other_versions) {
  REFUSES("other_draft", "built for draft 7 of the device protocol, this dovetail speaks its final version 1",
          "install the dovetail-other_draft");
  REFUSES("other_draft", "", kMatch);
  REFUSES("other_major", "built for version 2 of the device protocol, this dovetail speaks version 1", kMatch);
  REFUSES("newer_entry", "built for version 2 of the device protocol", kMatch);
  REFUSES("entry_refuses", "dvt_backend_v1: built for draft 7", kMatch);
  CHECK_EQ(load("newer_row").devices.size(), 2u);
}

TEST(plugins_that_crash) {
  REFUSES("constructor_crashes", "crashed with SIGABRT in its static constructors, saying: about to crash",
          "reinstall or update");
  REFUSES("constructor_exits", "left the process with exit code 3 in its static constructors",
          "reinstall or update");
  REFUSES("probe_crashes", "crashed with SIGABRT in dvt_probe_v1", "reinstall or update dovetail-probe_crashes");
  REFUSES("count_crashes", "crashed with SIGABRT in device_count", "reinstall or update");
  setenv("DOVETAIL_PROBE_TIMEOUT", "1", 1);
  REFUSES("count_hangs", "did not answer within 1 s in device_count", "reinstall or update");
  REFUSES("open_crashes", "crashed with SIGABRT in device_open", "reinstall or update");
  REFUSES("props_hang", "did not answer within 1 s in device_props", "reinstall or update");
  unsetenv("DOVETAIL_PROBE_TIMEOUT");
}

TEST(a_crash_where_the_kernel_reaps_children) {
  std::signal(SIGCHLD, SIG_IGN);
  setenv("DOVETAIL_PROBE_TIMEOUT", "5", 1);
  REFUSES("count_crashes", "crashed or left the process in device_count", "reinstall or update");
  unsetenv("DOVETAIL_PROBE_TIMEOUT");
  std::signal(SIGCHLD, SIG_DFL);
}

// A plugin that crashes here but not in the child process ends this process; the next process quarantines it.
TEST(a_crash_leaves_a_note) {
  cache();
  const auto crashes = [] {
    const pid_t process = fork();
    if (!process) {
      try {
        load("open_crashes_here");
      } catch (const Error&) {
      }
      _exit(0);
    }
    int status = 0;
    waitpid(process, &status, 0);
    return WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT;
  };
  CHECK(crashes());
  CHECK(!crashes());
  REFUSES("open_crashes_here", "open_crashes_here.so crashed an earlier process with SIGABRT", "after: rm '");
  for (const auto& file : std::filesystem::directory_iterator(cache() + "/dovetail"))
    if (file.path().filename().string().starts_with("crashed-")) std::filesystem::remove(file);
  CHECK(crashes());
}

TEST(a_library_that_flushes_subnormals) {
  volatile float tiny = 1e-40f, one = 1;
  const Backend& backend = load("flushes_subnormals");
  CHECK(tiny * one != 0);
  CHECK_EQ(backend.notes.size(), 1u);
  CHECK(backend.notes.at(0).find("flushes_subnormals.so changed how this process rounds") != std::string::npos);
}

TEST(rows_of_unknown_ops) {
  const std::vector<std::string> misspelt{
      "its row \"dvt.nn.softmax\" is never used: there is no such op, did you mean 'dvt.softmax'?"};
  CHECK(load("row_misspelt").notes == misspelt);
  const std::vector<std::string> public_name{
      "its row \"linalg.outer\" is never used: there is no such op, did you mean 'dvt.outer'?"};
  CHECK(load("row_public_name").notes == public_name);
  CHECK(load("minimal").notes.empty());
}

TEST(a_library_that_every_user_can_change) {
  const std::string copy = cache() + "/copy.so";
  std::filesystem::copy_file(path("row_of_another"), copy);
  std::filesystem::permissions(copy, std::filesystem::perms(0666));
  // Its row is for its author's own op, which may be registered later.
  const std::vector<std::string> writable{"every user of this machine can change its library; chmod o-w '" + copy +
                                          "'"};
  CHECK(load_backend("row_of_another", copy, {}).notes == writable);
}

TEST(texts_of_plugins_are_fit_for_a_terminal) {
  REFUSES("open_fails_colourfully", "?[31mred?]0;title??? \xc3\xa9t\xc3\xa9; retry", "correct what it names");
}

TEST(a_plugin_that_throws_for_want_of_threads) {
  dvt_backend table = *load("minimal").table;
  table.name = "throws";
  table.device_open = [](uint32_t, dvt_device**) -> dvt_status {
    throw std::system_error(std::make_error_code(std::errc::resource_unavailable_try_again));
  };
  CHECK_THROWS(Error, "it cannot start a thread", attach_backend("throws", &table));
}

TEST(plugins_that_are_not_whole) {
  REFUSES("no_entry", "has no symbol dvt_backend_v1", "not a Dovetail plugin");
  REFUSES("probe_says_no", "it cannot be used on this machine: this machine has no frobnicator",
          "uninstall dovetail-probe_says_no");
  REFUSES("no_dealloc", "its table has no dealloc", kAuthor);
  REFUSES("half_streams", "its streams lack a function", kAuthor);
  REFUSES("bad_alignment", "alloc_align is 48: expected a power of two", kAuthor);
  REFUSES("row_without_run", "row 0 of its kernel table 'dvt.negative': run is missing", kAuthor);
  REFUSES("row_without_prefix", "expected a name with a prefix", kAuthor);
  REFUSES("row_too_short", "row 0 of its kernel table: its struct_size ends before run", kAuthor);
  REFUSES("impostor", "it is registered as 'impostor' and calls itself 'somebody_else'", kAuthor);
}

TEST(tables_of_absurd_values) {
  REFUSES("rows_nowhere", "while its table was read", "reinstall or update dovetail-rows_nowhere");
  REFUSES("rows_absurd", "its table declares 18446744073709551615 kernels: expected at most 1048576", kAuthor);
  REFUSES("rows_missing", "row 1 of its kernel table: it is missing", kAuthor);
  REFUSES("row_without_version", "op_version: expected 1 or more", kAuthor);
  REFUSES("row_without_name", "row 0 of its kernel table: op: expected a name", kAuthor);
  REFUSES("row_long_name", "...': op: expected a name", kAuthor);
  REFUSES("row_two_lines", "'dvt.nega?tive': op: expected a name", kAuthor);
  REFUSES("row_long_engine", "...': expected NULL or a name", kAuthor);
  REFUSES("row_empty_engine", "its engine is '': expected NULL or a name", kAuthor);
  REFUSES("row_math_engine", "its engine is 'math', which is what the op's decomposition is called", kAuthor);
  REFUSES("row_without_operands", "operands are missing", kAuthor);
  REFUSES("row_many_inputs", "4294967295 inputs and 1 outputs", kAuthor);
  REFUSES("row_without_outputs", "1 inputs and 0 outputs", kAuthor);
  REFUSES("row_reserved", "operand 0: reserved is 3: expected 0", kAuthor);
  REFUSES("long_version", "its version is '0123456789", kAuthor);
  REFUSES("no_alignment", "alloc_align is 0: expected a power of two", kAuthor);
  REFUSES("huge_alignment", "alloc_align is 9223372036854775808: expected a power of two", kAuthor);
  REFUSES("count_absurd", "device_count: 1000000 devices: expected at most 1024", kAuthor);
}

TEST(texts_of_a_device) {
  const dvt_props& props = load("unended_text").devices.at(0)->props;
  CHECK_EQ(std::string(props.name), std::string(sizeof props.name - 1, ' '));
  CHECK_EQ(std::string(props.arch), std::string(sizeof props.arch - 1, 'a'));
}

TEST(devices_that_do_not_open) {
  REFUSES("count_fails", "device_count: the driver does not answer", "reinstall dovetail-count_fails");
  REFUSES("open_fails", "open_fails:0: device_open: the firmware is missing", "reinstall dovetail-open_fails");
  CHECK(load("no_devices").devices.empty());
  CHECK_EQ(load("no_devices").absence, "");
  CHECK(load("says_why_none").devices.empty());
  CHECK_EQ(load("says_why_none").absence, "there is no driver; install one");
  Backend& half = load("one_open_fails");
  CHECK_EQ(half.devices.size(), 1u);
  CHECK_EQ(half.devices[0]->name, "one_open_fails:1");
  CHECK_EQ(half.devices[0]->ordinal, 1u);
}

TEST(two_libraries_of_one_name) {
  load("minimal");
  CHECK_THROWS(Error, "a backend 'minimal' is loaded already", load_backend("minimal", path("no_entry"), {}));
  CHECK_THROWS(Error, "uninstall one of the two", load_backend("maximal", path("minimal"), {}));
}

TEST(a_table_without_a_library) {
  dvt_backend table = *load("minimal").table;
  CHECK_THROWS(Error, "is loaded already", attach_backend("minimal", &table));
  table.name = "attached";
  static dvt_backend kept = table;
  Backend& backend = attach_backend("attached", &kept);
  Device& device = *backend.devices.at(0);
  CHECK(device.index > 0);
  Vector x = filled(device, 100, 1), y = add(x, x);
  CHECK(is(y, 2));
  dvt_backend draft = table;
  draft.abi_draft = 1, draft.name = "drafty";
  CHECK_THROWS(Error, "built for draft 1", attach_backend("drafty", &draft));
  CHECK_THROWS(Error, "gives no table", attach_backend("none", nullptr));
  const std::string long_name(10000, 'x');
  const std::pair<const char*, const char*> names[] = {{"Bad-Name", "'Bad-Name'"},
                                                       {nullptr, "missing"},
                                                       {"", "''"},
                                                       {"two\nlines", "'two?lines'"},
                                                       {long_name.c_str(), "xxx...'"}};
  for (const auto& [name, shown] : names) {
    table.name = name;
    CHECK_THROWS(Error, shown + std::string(": expected at most 63 lower-case letters"),
                 attach_backend("", &table));
  }
}

TEST(more_devices_than_a_process_takes) {  // the last test, because it uses up the slots
  load("many_devices");
  CHECK_EQ(devices().size(), size_t(kMaxDevices));
  REFUSES("sound_too", "more than 32 devices in this process", "use fewer backends");
}

CHECK_MAIN
