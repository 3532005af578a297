// What ../broken.hpp needs of the good device's kernels, where that is a plugin which has been built before: a name
// that stands for them.
#pragma once
#include "dovetail/backend.hpp"

using Kernel = void (*)(const dvt_call*);

dvt_status launch(dvt_device*, const dvt_call*, Kernel);
