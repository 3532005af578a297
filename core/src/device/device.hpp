// Loaded backends, their devices and streams, the thread pool, logs.
#pragma once
#include "device/backend.hpp"
#include "device/interpreter.hpp"
#include "device/log.hpp"
#include "device/storage.hpp"
#include "device/stream.hpp"
#include "device/threads.hpp"
