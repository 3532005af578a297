// Replaces the good device's kernels for ../broken.hpp if that device is an already built plugin: a placeholder.
#pragma once
#include <functional>

#include "dovetail/backend.hpp"

using Work = std::function<void(const dvt_call*)>;

dvt_status launch(dvt_device*, const dvt_call*, Work);
