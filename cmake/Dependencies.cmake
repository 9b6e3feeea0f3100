# Everything Foreshard links against, each as one imported target.
find_program(CCACHE ccache)
if(CCACHE)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CCACHE})
endif()

find_package(fmt REQUIRED)
find_package(Boost 1.74 REQUIRED COMPONENTS program_options)
find_package(nlohmann_json REQUIRED)
find_package(Threads REQUIRED)
find_package(OpenMP REQUIRED COMPONENTS CXX)
find_package(MPI REQUIRED COMPONENTS C)
target_compile_definitions(MPI::MPI_C INTERFACE OMPI_SKIP_MPICXX MPICH_SKIP_MPICXX)  # not the C++ bindings
set(HDF5_PREFER_PARALLEL ON)
find_package(HDF5 REQUIRED COMPONENTS C)
find_package(GTest REQUIRED)
find_package(benchmark REQUIRED)

add_library(foreshard_hdf5 INTERFACE)
target_include_directories(foreshard_hdf5 SYSTEM INTERFACE ${HDF5_INCLUDE_DIRS})
target_link_libraries(foreshard_hdf5 INTERFACE ${HDF5_C_LIBRARIES})
if(HDF5_IS_PARALLEL)  # its headers include mpi.h
  target_link_libraries(foreshard_hdf5 INTERFACE MPI::MPI_C)
endif()

# Debian's dnnl CMake package fails hard without OpenCL headers, so the library is found directly.
find_path(DNNL_INCLUDE_DIR oneapi/dnnl/dnnl.hpp REQUIRED)
find_library(DNNL_LIBRARY dnnl REQUIRED)
add_library(foreshard_onednn INTERFACE)
target_include_directories(foreshard_onednn SYSTEM INTERFACE ${DNNL_INCLUDE_DIR})
target_link_libraries(foreshard_onednn INTERFACE ${DNNL_LIBRARY})
