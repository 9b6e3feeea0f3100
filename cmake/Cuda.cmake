# FORESHARD_CUDA: whether this build has the CUDA engine and its kernels. Where there is no nvcc it says so and builds the rest.
option(FORESHARD_CUDA "Build for CUDA devices where nvcc is found" ON)
if(FORESHARD_CUDA)
  include(CheckLanguage)
  check_language(CUDA)
endif()
if(NOT FORESHARD_CUDA OR NOT CMAKE_CUDA_COMPILER)
  set(FORESHARD_CUDA OFF)
  message(STATUS "CUDA is left out: no nvcc found, or FORESHARD_CUDA is off. Put nvcc into PATH, or set CUDACXX, to build for GPUs.")
  return()
endif()

if(NOT DEFINED CMAKE_CUDA_ARCHITECTURES)
  set(CMAKE_CUDA_ARCHITECTURES 80-real 90-real 100)  # A100, H100 and H200, B200; and PTX for what follows
endif()
enable_language(CUDA)
find_package(CUDAToolkit REQUIRED)

# foreshard_cuda_compile(target): C++20 by hand, since CMake 3.25 knows no such standard of nvcc 13. What ptxas says of each object's
# registers, shared memory and spills is kept beside it as <object>.resources.
function(foreshard_cuda_compile target)
  set(launcher ${PROJECT_SOURCE_DIR}/cmake/keep_resources.sh)
  if(CCACHE)
    list(APPEND launcher ${CCACHE})
  endif()
  target_compile_features(${target} PUBLIC cxx_std_20)
  set_target_properties(${target} PROPERTIES CXX_EXTENSIONS OFF CUDA_COMPILER_LAUNCHER "${launcher}")
  target_compile_options(${target} PRIVATE
    $<$<COMPILE_LANGUAGE:CXX>:${FORESHARD_WARNINGS}> $<$<AND:$<COMPILE_LANGUAGE:CXX>,$<BOOL:${FORESHARD_WERROR}>>:-Werror>
    "$<$<COMPILE_LANGUAGE:CUDA>:SHELL:-std=c++20 --expt-relaxed-constexpr -Xcompiler=-Wall,-Wextra,-Wshadow -Xptxas=-v>"
    $<$<AND:$<COMPILE_LANGUAGE:CUDA>,$<BOOL:${FORESHARD_WERROR}>>:-Werror=all-warnings>)
endfunction()
