// The driver's names of errors.
#include "driver/cuda_api.hpp"

namespace {
struct Words {
  CUresult result;
  const char *name, *text;
};
#define WORDS(result, text) {result, #result, text},
constexpr Words all[] = {
    WORDS(CUDA_SUCCESS, "no error")                                                                              //
    WORDS(CUDA_ERROR_INVALID_VALUE, "invalid argument")                                                          //
    WORDS(CUDA_ERROR_OUT_OF_MEMORY, "out of memory")                                                             //
    WORDS(CUDA_ERROR_NOT_INITIALIZED, "initialization error")                                                    //
    WORDS(CUDA_ERROR_DEINITIALIZED, "driver shutting down")                                                      //
    WORDS(CUDA_ERROR_STUB_LIBRARY, "CUDA driver is a stub library")                                              //
    WORDS(CUDA_ERROR_DEVICE_UNAVAILABLE, "CUDA-capable device(s) is/are busy or unavailable")                    //
    WORDS(CUDA_ERROR_NO_DEVICE, "no CUDA-capable device is detected")                                            //
    WORDS(CUDA_ERROR_INVALID_DEVICE, "invalid device ordinal")                                                   //
    WORDS(CUDA_ERROR_INVALID_IMAGE, "device kernel image is invalid")                                            //
    WORDS(CUDA_ERROR_INVALID_CONTEXT, "invalid device context")                                                  //
    WORDS(CUDA_ERROR_NO_BINARY_FOR_GPU, "no kernel image is available for execution on the device")              //
    WORDS(CUDA_ERROR_ECC_UNCORRECTABLE, "uncorrectable ECC error encountered")                                   //
    WORDS(CUDA_ERROR_PEER_ACCESS_UNSUPPORTED, "peer access is not supported between these two devices")          //
    WORDS(CUDA_ERROR_NVLINK_UNCORRECTABLE, "uncorrectable NVLink error detected during the execution")           //
    WORDS(CUDA_ERROR_UNSUPPORTED_PTX_VERSION, "the provided PTX was compiled with an unsupported toolchain.")    //
    WORDS(CUDA_ERROR_CONTAINED, "Invalid access of peer GPU memory over nvlink or a hardware error")             //
    WORDS(CUDA_ERROR_OPERATING_SYSTEM, "OS call failed or operation not supported on this OS")                   //
    WORDS(CUDA_ERROR_INVALID_HANDLE, "invalid resource handle")                                                  //
    WORDS(CUDA_ERROR_ILLEGAL_STATE, "the operation cannot be performed in the present state")                    //
    WORDS(CUDA_ERROR_NOT_FOUND, "named symbol not found")                                                        //
    WORDS(CUDA_ERROR_NOT_READY, "device not ready")                                                              //
    WORDS(CUDA_ERROR_ILLEGAL_ADDRESS, "an illegal memory access was encountered")                                //
    WORDS(CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES, "too many resources requested for launch")                         //
    WORDS(CUDA_ERROR_LAUNCH_TIMEOUT, "the launch timed out and was terminated")                                  //
    WORDS(CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED, "peer access is already enabled")                              //
    WORDS(CUDA_ERROR_PEER_ACCESS_NOT_ENABLED, "peer access has not been enabled")                                //
    WORDS(CUDA_ERROR_CONTEXT_IS_DESTROYED, "context is destroyed")                                               //
    WORDS(CUDA_ERROR_ASSERT, "device-side assert triggered")                                                     //
    WORDS(CUDA_ERROR_HARDWARE_STACK_ERROR, "hardware stack error")                                               //
    WORDS(CUDA_ERROR_ILLEGAL_INSTRUCTION, "an illegal instruction was encountered")                              //
    WORDS(CUDA_ERROR_MISALIGNED_ADDRESS, "misaligned address")                                                   //
    WORDS(CUDA_ERROR_INVALID_ADDRESS_SPACE, "operation not supported on global/shared address space")            //
    WORDS(CUDA_ERROR_INVALID_PC, "invalid program counter")                                                      //
    WORDS(CUDA_ERROR_LAUNCH_FAILED, "unspecified launch failure")                                                //
    WORDS(CUDA_ERROR_TENSOR_MEMORY_LEAK, "tensor memory not completely freed")                                   //
    WORDS(CUDA_ERROR_NOT_PERMITTED, "operation not permitted")                                                   //
    WORDS(CUDA_ERROR_NOT_SUPPORTED, "operation not supported")                                                   //
    WORDS(CUDA_ERROR_SYSTEM_NOT_READY, "system not yet initialized")                                             //
    WORDS(CUDA_ERROR_SYSTEM_DRIVER_MISMATCH, "system has unsupported display driver / cuda driver combination")  //
    WORDS(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, "operation not permitted when stream is capturing")             //
    WORDS(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, "operation failed due to a previous error during capture")      //
    WORDS(CUDA_ERROR_STREAM_CAPTURE_MERGE, "operation would result in a merge of separate capture sequences")    //
    WORDS(CUDA_ERROR_STREAM_CAPTURE_UNMATCHED, "capture was not ended in the same stream as it began")           //
    WORDS(CUDA_ERROR_STREAM_CAPTURE_UNJOINED, "capturing stream has unjoined work")                              //
    WORDS(CUDA_ERROR_STREAM_CAPTURE_ISOLATION, "dependency created on uncaptured work in another stream")        //
    WORDS(CUDA_ERROR_STREAM_CAPTURE_IMPLICIT,
          "operation would make the legacy stream depend on a capturing stream")                                 //
    WORDS(CUDA_ERROR_CAPTURED_EVENT, "operation not permitted on an event last recorded in a capturing stream")  //
    WORDS(CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD,
          "attempt to terminate a thread-local capture sequence from another thread")  //
    WORDS(CUDA_ERROR_EXTERNAL_DEVICE, "async error from an external device")           //
    WORDS(CUDA_ERROR_UNKNOWN, "unknown error")};
#undef WORDS

CUresult put(CUresult error, const char** out, const char* Words::* which) {
  *out = nullptr;
  for (const Words& words : all)
    if (words.result == error) {
      *out = words.*which;
      return CUDA_SUCCESS;
    }
  return CUDA_ERROR_INVALID_VALUE;
}
}  // namespace

CUresult cuGetErrorName(CUresult error, const char** out) { return put(error, out, &Words::name); }
CUresult cuGetErrorString(CUresult error, const char** out) { return put(error, out, &Words::text); }
