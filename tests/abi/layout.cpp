// The same assertions, as C++.
#include "layout.c"
