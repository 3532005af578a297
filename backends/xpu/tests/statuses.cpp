// The status that a SYCL exception becomes, with each argument as its message.
#include <cstdio>

#include "device/errors.hpp"

int main(int n, char** messages) {
  for (int i = 1; i < n; ++i)
    std::printf("%d\n", gpu::status_of(sycl::exception(sycl::make_error_code(sycl::errc::runtime), messages[i])));
}
