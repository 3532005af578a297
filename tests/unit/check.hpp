// Helpers of the C++ tests: TEST(name) {...}, CHECK, CHECK_EQ, CHECK_THROWS, and CHECK_MAIN once per program.
// A program runs its tests, or those whose name contains its argument, prints every failed check and exits
// with 1 if one failed.
#pragma once
#include <atomic>
#include <cstdio>
#include <cstring>
#include <exception>
#include <sstream>
#include <string>
#include <vector>

namespace check {
struct Test {
  const char* name;
  void (*body)();
  static std::vector<Test>& all() {
    static std::vector<Test> tests;
    return tests;
  }
  Test(const char* name, void (*body)()) : name(name), body(body) { all().push_back(*this); }
};
inline const char* current = "";
// Can a process fork while other threads allocate? The thread sanitizer cannot follow threads that such a
// child starts; with GCC 12's address sanitizer a child inherits its allocator's locks as held.
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
constexpr bool forks_beside_threads = false;
#else
constexpr bool forks_beside_threads = true;
#endif
inline std::atomic<int> checks{0}, failures{0};  // kernels run checks on any thread

inline bool that(bool ok, const char* file, int line, const std::string& what) {
  ++checks;
  if (!ok && ++failures <= 50) std::fprintf(stderr, "%s:%d: %s: %s\n", file, line, current, what.c_str());
  return ok;
}

template <class A, class B>
bool equal(const A& a, const B& b, const char* file, int line, const char* what) {
  if (a == b) return that(true, file, line, {});
  std::ostringstream text;
  text << what << ": got " << a << ", expected " << b;
  return that(false, file, line, text.str());
}

// Does `f` throw an E whose text contains `text`?
template <class E, class F>
bool throws(F&& f, const std::string& text, const char* file, int line) {
  try {
    f();
  } catch (const E& e) {
    const std::string got = e.what();
    return that(got.find(text) != std::string::npos, file, line,
                "threw '" + got + "', expected '" + text + "' in it");
  }
  return that(false, file, line, "threw nothing, expected '" + text + "'");
}

inline int run(int n, char** args) {
  for (const Test& t : Test::all()) {
    if (n > 1 && !std::strstr(t.name, args[1])) continue;
    current = t.name;
    try {
      t.body();
    } catch (const std::exception& e) {
      that(false, __FILE__, __LINE__, std::string("threw ") + e.what());
    }
  }
  std::printf("%d checks, %d failed\n", checks.load(), failures.load());
  return failures != 0;
}
}  // namespace check

#define TEST(name)                                   \
  static void name();                                \
  static const check::Test test_##name(#name, name); \
  static void name()
#define CHECK(ok) check::that(bool(ok), __FILE__, __LINE__, #ok)
#define CHECK_EQ(a, b) check::equal(a, b, __FILE__, __LINE__, #a)
#define CHECK_THROWS(E, text, ...) check::throws<E>([&] { __VA_ARGS__; }, text, __FILE__, __LINE__)
#define CHECK_MAIN \
  int main(int n, char** args) { return check::run(n, args); }
