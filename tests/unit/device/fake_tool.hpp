// A toolchain for tests: the worker is this test program, started with "--worker MODE". What it does depends on the
// request's text. It writes its process id and "start", or the request, as lines to the file $FAKE_TOOL_LOG.
#pragma once
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string>
#include <string_view>
#include <thread>

#include "platform/platform.hpp"
#include "sha256.hpp"

namespace fake_tool {
// An image with one function without arguments that returns `value`, and a second one that is not there.
inline std::string image(uint16_t value) {
  std::string code;
  const auto word = [&](uint32_t w) { code.append(reinterpret_cast<const char*>(&w), 4); };
#if defined(__x86_64__)
  code = "\xb8";  // mov eax, value; ret
  word(value);
  code += "\xc3";
#else
  word(0x52800000 | uint32_t(value) << 5), word(0xd65f03c0);  // mov w0, value; ret
#endif
  const std::string_view features = "+none";
  std::string out("DVTCODE\0", 8);
  const auto put = [&](auto number) { out.append(reinterpret_cast<const char*>(&number), sizeof number); };
  const uint32_t begin = 128;
  const uint64_t size = begin + code.size();
  for (const uint32_t n : {1u, dovetail::platform::elf_machine(), 4096u, 2u, uint32_t(features.size()), begin})
    put(n);
  put(size);
  out.append(32, '\0');
  put(uint64_t{begin}), put(uint64_t{0});
  out += features;
  out.resize(begin);
  return out + code;
}
// With the checksum that belongs to it.
inline std::string sealed(std::string image) {
  const auto digest = dovetail::sha256(image.substr(0, 40) + image.substr(72));
  std::memcpy(image.data() + 40, digest.data(), digest.size());
  return image;
}
inline uint16_t value_of(std::string_view request) { return uint16_t(7 + request.size()); }

inline void note(const std::string& line) {
  if (const char* path = std::getenv("FAKE_TOOL_LOG"))
    std::ofstream(path, std::ios::app) << std::to_string(getpid()) + " " + line + "\n";
}
inline void send_all(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t n = send(0, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (n <= 0) _exit(3);
    bytes.remove_prefix(size_t(n));
  }
}
inline bool receive(void* to, size_t size) { return recv(0, to, size, MSG_WAITALL) == ssize_t(size); }
inline void send_answer(uint32_t made, std::string_view bytes) {
  const uint32_t head[4] = {made, 1500, uint32_t(bytes.size()), 0};
  send_all({reinterpret_cast<const char*>(head), sizeof head});
  send_all(bytes);
}
inline void hang() {
  for (;;) pause();
}

inline int worker(std::string_view mode) {
  note("start");
  if (mode == "mute") hang();
  if (mode == "late") std::this_thread::sleep_for(std::chrono::milliseconds(300));
  if (mode == "broken") {
    std::fprintf(stderr, "Traceback:\nModuleNotFoundError: No module named 'llvmlite'\n");
    return 1;
  }
  send_all(mode == "rude" ? "HTTP/1.1 400 Bad" : "dovetail-tool 1\n");
  for (uint64_t size; receive(&size, sizeof size);) {
    std::string request(size, '\0');
    if (!receive(request.data(), size)) return 2;
    note(request);
    const auto begins = [&](const char* text) { return request.starts_with(text); };
    if (begins("crash")) {
      std::fprintf(stderr, "LLVM ERROR: Cannot select\n");
      signal(SIGABRT, SIG_DFL);
      std::abort();
    }
    if (begins("hang")) hang();
    if (begins("leave")) return 5;
    if (begins("garbage")) send_all(std::string(64, '\xff'));
    if (begins("short")) {
      const uint32_t head[4] = {1, 0, 1000, 0};
      send_all({reinterpret_cast<const char*>(head), sizeof head});
      send_all("too little");
      return 0;
    }
    if (begins("slow")) std::this_thread::sleep_for(std::chrono::milliseconds(300));
    if (begins("loud"))
      for (int i = 0; i < 4096; ++i) std::fprintf(stderr, "%0255d\n", i), std::printf("%0255d\n", i);
    if (begins("refuse")) send_answer(0, "undefined symbol 'expf8'");
    else if (begins("damaged")) send_answer(1, image(1));
    else send_answer(1, sealed(image(value_of(request))));
  }
  return 0;
}
}  // namespace fake_tool
