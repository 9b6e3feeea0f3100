# The facts that src/base/version.cpp reports, as known when the build is configured.
execute_process(COMMAND git describe --always --dirty --abbrev=12 --exclude=*
  WORKING_DIRECTORY ${PROJECT_SOURCE_DIR} OUTPUT_VARIABLE commit OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
string(JOIN "," libraries MPI=${MPI_C_VERSION} HDF5=${HDF5_VERSION} Boost=${Boost_VERSION_STRING}
  nlohmann-json=${nlohmann_json_VERSION} fmt=${fmt_VERSION})
if(FORESHARD_CUDA)
  string(APPEND libraries ,CUDA=${CUDAToolkit_VERSION})
endif()
set_source_files_properties(src/base/version.cpp PROPERTIES COMPILE_DEFINITIONS
  "FORESHARD_VERSION=\"${PROJECT_VERSION}\";FORESHARD_COMMIT=\"${commit}\";FORESHARD_BUILD_TYPE=\"${CMAKE_BUILD_TYPE}\";FORESHARD_COMPILER=\"${CMAKE_CXX_COMPILER_ID} ${CMAKE_CXX_COMPILER_VERSION}\";FORESHARD_LIBRARIES=\"${libraries}\"")

# foreshard_knows_commit(source): FORESHARD_COMMIT is defined in it, of this folder's targets.
function(foreshard_knows_commit source)
  set_source_files_properties(${source} PROPERTIES COMPILE_DEFINITIONS "FORESHARD_COMMIT=\"${commit}\"")
endfunction()
foreshard_knows_commit(${PROJECT_SOURCE_DIR}/src/engine/cuda_module.cpp)
