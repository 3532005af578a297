# CUDA's compiler and headers as their wheels bring them: GPU_NVCC, and the target cuda::headers.
include("${CMAKE_CURRENT_LIST_DIR}/wheels.cmake")

gpu_file_of(GPU_NVCC nvidia-cuda-nvcc bin/nvcc)
gpu_file_of(cuda_header nvidia-cuda-runtime include/cuda.h)
gpu_file_of(nvrtc_header nvidia-cuda-nvrtc include/nvrtc.h)
gpu_file_of(cublaslt_header nvidia-cublas include/cublasLt.h)
gpu_file_of(cudnn_header nvidia-cudnn-cu13 include/cudnn.h)
gpu_file_of(frontend_header nvidia-cudnn-frontend include/cudnn_frontend.h)
gpu_file_of(nccl_header nvidia-nccl-cu13 include/nccl.h)
execute_process(COMMAND "${GPU_NVCC}" --version OUTPUT_VARIABLE GPU_TOOLKIT_VERSION COMMAND_ERROR_IS_FATAL ANY)
string(REGEX REPLACE ".*release ([0-9.]+).*" "\\1" GPU_TOOLKIT_VERSION "${GPU_TOOLKIT_VERSION}")

add_library(cuda::headers INTERFACE IMPORTED)
foreach(header IN ITEMS ${cuda_header} ${nvrtc_header} ${cublaslt_header} ${cudnn_header} ${frontend_header} ${nccl_header})
  cmake_path(GET header PARENT_PATH folder)
  target_include_directories(cuda::headers SYSTEM INTERFACE "${folder}")
endforeach()
