#include <cstring>
#include <string>

#include "device/encoded_map.hpp"
#include "driver/call.hpp"

using namespace emulator;

// The form that the backend's kernels use: 16-bit elements, tiles of rows of 128 bytes, swizzled.
CUresult cuTensorMapEncodeTiled(CUtensorMap* out, CUtensorMapDataType type, cuuint32_t rank, void* address,
                                const cuuint64_t* sizes, const cuuint64_t* strides, const cuuint32_t* box,
                                const cuuint32_t* steps, CUtensorMapInterleave interleave,
                                CUtensorMapSwizzle swizzle, CUtensorMapL2promotion, CUtensorMapFloatOOBfill fill) {
  return answer("cuTensorMapEncodeTiled", Needs::driver, [&] {
    if ((type != CU_TENSOR_MAP_DATA_TYPE_BFLOAT16 && type != CU_TENSOR_MAP_DATA_TYPE_FLOAT16) || rank != 4 ||
        interleave != CU_TENSOR_MAP_INTERLEAVE_NONE || swizzle != CU_TENSOR_MAP_SWIZZLE_128B ||
        fill != CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE)
      refuse(CUDA_ERROR_NOT_SUPPORTED, "a tensor map of another kind is not emulated");
    EncodedMap map{reinterpret_cast<uint64_t>(address), {}, {}, {}, rank, 2};
    const auto expect = [](bool right, const std::string& what) {
      if (!right) refuse(CUDA_ERROR_INVALID_VALUE, what);
    };
    expect(address && map.address % 16 == 0, "the address is no multiple of 16");
    for (cuuint32_t axis = 0; axis < rank; ++axis) {
      const std::string which = " of axis " + std::to_string(axis);
      expect(sizes[axis] > 0 && sizes[axis] < uint64_t{1} << 32, "the size" + which + " is 0 or above 2**32");
      expect(box[axis] > 0 && box[axis] <= 256, "the box's size" + which + " is 0 or above 256");
      expect(steps[axis] == 1, "steps other than 1 are not emulated");
      map.sizes[axis] = uint32_t(sizes[axis]), map.box[axis] = box[axis];
      if (!axis) continue;
      const cuuint64_t stride = strides[axis - 1];
      expect(stride > 0 && stride % 16 == 0 && stride < uint64_t{1} << 40,
             "the stride" + which + " is no multiple of 16 below 2**40");
      map.strides[axis - 1] = stride;
    }
    expect(box[0] * map.element_bytes <= 128, "the box is wider than the swizzle");
    std::memcpy(place_for(out).opaque, &map, sizeof map);
  });
}
