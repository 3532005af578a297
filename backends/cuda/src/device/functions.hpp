// The device's functions of abi.h, one file of this folder each for devices, memory, copies, streams and capture.
#pragma once
#include "dovetail/backend.hpp"

namespace gpu {
dvt_status device_count(uint32_t*);
dvt_status device_open(uint32_t, dvt_device**);
void device_close(dvt_device*);
dvt_status device_props(dvt_device*, dvt_props*);

dvt_status mem_info(dvt_device*, uint64_t* free_bytes, uint64_t* total);
dvt_status alloc(dvt_device*, uint64_t size, uint32_t kind, dvt_stream*, void**);
void dealloc(dvt_device*, void*, uint32_t kind, dvt_stream*);

dvt_status copy(dvt_device*, const DLTensor* dst, const DLTensor* src, dvt_stream*);

extern const dvt_streams streams;

const void* extension(const char* name, uint32_t version);
}  // namespace gpu
