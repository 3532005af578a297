/* The layout of abi.h and runtime.h, byte by byte. It compiles as C11, as C++17, for Windows, and with another
 * <dlpack/dlpack.h>: an assertion that fails means that the ABI changed, and plugins and programs that were built
 * before would break. A member that is added at the end of a struct gets its line, and the struct its new size. */
#include "dovetail/runtime.h"

#define SIZE(type, bytes) DVT_STATIC_ASSERT(sizeof(type) == (bytes), "the ABI changed: sizeof " #type);
#define AT(type, member, offset) \
  DVT_STATIC_ASSERT(offsetof(type, member) == (offset), "the ABI changed: offset of " #type "." #member);
#define VALUE(name, value) DVT_STATIC_ASSERT((name) == (value), "the ABI changed: value of " #name);
#include "layout.inc"
#include "layout_runtime.inc"

#if defined(EXPECT_OTHER_DLPACK) && !defined(DLPACK_DLPACK_H_)
#error "abi.h did not take the <dlpack/dlpack.h> that is at hand"
#endif
