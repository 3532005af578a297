// What ../broken.hpp needs of the good device's kernels if that is an already built plugin: a placeholder
// name.
#pragma once
#include "dovetail/backend.hpp"

using Kernel = void (*)(const dvt_call*);

dvt_status launch(dvt_device*, const dvt_call*, Kernel);
