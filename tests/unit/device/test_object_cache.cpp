#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "check.hpp"
#include "device/fake_tool.hpp"
#include "device/image.hpp"
#include "device/object_cache.hpp"
#include "error.hpp"

using namespace dovetail;
namespace fs = std::filesystem;

namespace {
struct Scratch {
  std::string path = (fs::temp_directory_path() / "dovetail-objects-XXXXXX").string();
  Scratch() {
    if (!mkdtemp(path.data())) std::abort();
  }
  ~Scratch() { fs::remove_all(path); }
};
uid_t owner(const std::string& path) {
  struct stat status{};
  stat(path.c_str(), &status);
  return status.st_uid;
}
mode_t rights(const std::string& path) {
  struct stat status{};
  stat(path.c_str(), &status);
  return status.st_mode & 0777;
}
const std::string key(64, 'a');
}  // namespace

TEST(it_keeps_objects) {
  const Scratch scratch;
  const std::string folder = scratch.path + "/deep/objects";
  ObjectCache cache(folder);
  CHECK_EQ(cache.problem(), "");
  CHECK_EQ(rights(folder), mode_t{0700});
  CHECK(!cache.read(key));
  cache.write(key, "object");
  CHECK_EQ(cache.read(key).value_or("none"), "object");
  CHECK_EQ(ObjectCache(folder).read(key).value_or("none"), "object");
  CHECK_EQ(rights(folder + "/" + key + ".code"), mode_t{0600});
  cache.write(key, "another");
  CHECK_EQ(cache.read(key).value_or("none"), "another");
  cache.remove(key);
  CHECK(!cache.read(key));
  CHECK(fs::is_empty(folder));
}

TEST(it_refuses_folders_of_others) {
  const Scratch scratch;
  const std::string folder = scratch.path + "/objects";
  fs::create_directory(folder);
  for (const mode_t mode : {0755, 0770, 0701}) {
    chmod(folder.c_str(), mode);
    CHECK_EQ(ObjectCache(folder).problem(),
             folder + " is open to other users; correct it: chmod 700 '" + folder + "'");
  }
  chmod(folder.c_str(), 0700);
  CHECK_EQ(ObjectCache(folder).problem(), "");
  fs::create_directory_symlink(folder, scratch.path + "/link");
  CHECK(!ObjectCache(scratch.path + "/link").problem().empty());
  // Root can give a folder away; others find one of root's. In a namespace with one user there is none.
  const bool given = !chown(folder.c_str(), 12345, 12345);
  const std::string foreign = given ? folder : "/";
  if (owner(foreign) == geteuid()) return;
  ObjectCache cache(foreign);
  CHECK_EQ(cache.problem(), foreign + " belongs to another user");
  cache.write(key, "object");
  CHECK(!cache.read(key));
  CHECK(!fs::exists(foreign + "/" + key + ".code"));
}

TEST(it_does_without_a_folder) {
  for (const char* path : {"", "/proc/none/objects", "/dev/null/objects"}) {
    ObjectCache cache(path);
    CHECK(!cache.problem().empty());
    cache.write(key, "object");
    CHECK(!cache.read(key));
    CHECK(cache.lock_worker().has_value());  // alone
    CHECK(cache.lock_key(key).has_value());
  }
}

TEST(it_reads_plain_files_of_this_user_alone) {
  const Scratch scratch;
  ObjectCache cache(scratch.path);
  const std::string file = scratch.path + "/" + key + ".code";
  CHECK(!mkfifo(file.c_str(), 0600));
  CHECK(!cache.read(key));
  fs::remove(file);
  fs::create_directory(file);
  CHECK(!cache.read(key));
  fs::remove(file);
  std::ofstream(scratch.path + "/elsewhere") << "x";
  fs::create_symlink("elsewhere", file);
  CHECK(!cache.read(key));
  fs::remove(file);
  std::ofstream(file) << "x";
  CHECK(cache.read(key).has_value());
  fs::resize_file(file, kLargestImage + 1);
  CHECK(!cache.read(key));
  fs::resize_file(file, 1);
  const bool given = !chown(file.c_str(), 12345, 12345);
  CHECK_EQ(cache.read(key).has_value(), !given);
}

TEST(it_forgets_what_was_used_longest_ago) {
  const Scratch scratch;
  const auto name = [](int i) { return std::string(63, 'k') + char('a' + i); };
  const std::string object(10000, 'x');  // three blocks
  {
    ObjectCache cache(scratch.path, 8 * 12288);
    for (int i = 0; i < 8; ++i) {
      cache.write(name(i), object);
      const auto age = std::chrono::hours(100 - i);
      fs::last_write_time(scratch.path + "/" + name(i) + ".code", fs::file_time_type::clock::now() - age);
    }
    CHECK(cache.read(name(0)).has_value());  // it is the last to go now
    cache.write(name(8), object);            // one too many: two more go
  }
  ObjectCache cache(scratch.path, 8 * 12288);
  const bool left[] = {true, false, false, false, true, true, true, true, true};
  for (int i = 0; i < 9; ++i) CHECK_EQ(cache.read(name(i)).has_value(), left[i]);
}

TEST(locks_last_as_long_as_a_copy_of_their_file) {
  const Scratch scratch;
  const ObjectCache cache(scratch.path), another(scratch.path);
  std::optional<platform::FileLock> first = cache.lock_worker(), second = another.lock_worker();
  CHECK(first && second && !cache.lock_worker());
  const int copy = dup(first->file());
  first.reset();
  CHECK(!another.lock_worker());
  close(copy);
  CHECK(another.lock_worker().has_value());
  const std::optional<platform::FileLock> lock = cache.lock_key(key);
  CHECK(lock && !another.lock_key(key) && another.lock_key(std::string(64, 'b')));
}

TEST(images_that_are_wrong) {
  const std::string good = fake_tool::image(42);
  const Code code(fake_tool::sealed(good));
  CHECK_EQ(reinterpret_cast<int (*)()>(const_cast<void*>(code.entry(0)))(), 42);
  CHECK(!code.entry(1) && !code.entry(2) && !code.entry(UINT32_MAX));
  const auto refused = [&](const char* why, size_t at, auto value) {
    std::string image = good;
    std::memcpy(image.data() + at, &value, sizeof value);
    CHECK_THROWS(Error, why, Code{fake_tool::sealed(image)});
  };
  refused("no image", 0, 'E');
  refused("version: got 2, expected 1", 8, 2u);
  refused("machine: got 40", 12, 40u);
  refused("page: got 3", 16, 3u);
  refused("page: got 0", 16, 0u);
  refused("page: got 2147483648", 16, 1u << 31);
  refused("functions: got 5000", 20, 5000u);
  refused("features: got 4294967295", 24, UINT32_MAX);
  refused("begin of an image's code: got 80", 28, 80u);  // within the header
  refused("begin of an image's code: got 4000", 28, 4000u);
  refused("begin of an image's code", 20, 20u);  // more functions than there is room for
  refused("bytes", 32, uint64_t{good.size() + 1});
  refused("bytes", 32, UINT64_MAX);
  refused("a function's offset in an image: got 8", 72, uint64_t{8});
  refused("a function's offset in an image", 72, uint64_t{good.size()});
  refused("a function's offset in an image", 80, UINT64_MAX);
  CHECK_THROWS(Error, "checksum", Code{good});
  for (size_t i = 0; i < good.size(); ++i) {  // one bit anywhere
    std::string image = fake_tool::sealed(good);
    image[i] = char(image[i] ^ 1);
    CHECK_THROWS(Error, "", Code{image});
  }
  for (size_t n = 0; n < good.size(); ++n) CHECK_THROWS(Error, "", Code{fake_tool::sealed(good).substr(0, n)});
}

CHECK_MAIN
