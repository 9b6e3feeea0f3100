# foreshard_library(name DIR folders... [ONLY prefix] [EXCLUDE prefix] [NATIVE] [PUBLIC libs...] [PRIVATE libs...])
# One static library per folder, of all its sources; ONLY and EXCLUDE select files by the beginning of their names.
# NATIVE compiles for FORESHARD_PROCESSOR (without errno, roots are vectorised; no number changes).
set(FORESHARD_PROCESSOR native CACHE STRING "Processor that numbers are computed for, as -march names it; native: the building machine's")
set(FORESHARD_WARNINGS -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wno-sign-conversion -Wno-missing-field-initializers
    -Wno-maybe-uninitialized -Wno-restrict)  # the last two: false positives of GCC 12 in library headers

function(foreshard_compile target)
  target_compile_features(${target} PUBLIC cxx_std_20)
  set_target_properties(${target} PROPERTIES CXX_EXTENSIONS OFF)
  target_compile_options(${target} PRIVATE ${FORESHARD_WARNINGS} $<$<BOOL:${FORESHARD_WERROR}>:-Werror>)
  if(FORESHARD_SANITIZE)
    # -O1 -g1: instrumented template code takes several times as long to compile above that. Checks of every pointer for null
    # (which faults by itself), for alignment and for its dynamic type would take 40 % more.
    target_compile_options(${target} PRIVATE -fsanitize=${FORESHARD_SANITIZE} -fno-sanitize=null,alignment,vptr -fno-omit-frame-pointer -O1 -g1)
    target_link_options(${target} PUBLIC -fsanitize=${FORESHARD_SANITIZE})
  endif()
endfunction()

function(foreshard_library name)
  cmake_parse_arguments(ARG "NATIVE" "ONLY;EXCLUDE" "DIR;PUBLIC;PRIVATE" ${ARGN})
  set(sources "")
  foreach(dir ${ARG_DIR})
    file(GLOB found CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/${dir}/${ARG_ONLY}*.cpp)
    list(APPEND sources ${found})
  endforeach()
  if(ARG_EXCLUDE)
    list(FILTER sources EXCLUDE REGEX "/${ARG_EXCLUDE}[^/]*$")
  endif()
  set(target foreshard_${name})
  set(kind PUBLIC)
  if(sources)
    add_library(${target} STATIC ${sources})
    foreshard_compile(${target})
    target_link_libraries(${target} PRIVATE ${ARG_PRIVATE})
    if(ARG_NATIVE)
      target_compile_options(${target} PRIVATE -march=${FORESHARD_PROCESSOR} -O3 -fno-math-errno -Wno-psabi)
    endif()
  else()
    add_library(${target} INTERFACE)
    set(kind INTERFACE)
  endif()
  target_include_directories(${target} ${kind} ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR})
  target_link_libraries(${target} ${kind} ${ARG_PUBLIC} Threads::Threads)
endfunction()

# foreshard_app(name libs...): the binary foreshard-<name> from apps/<name>.cpp.
function(foreshard_app name)
  if(NOT EXISTS ${CMAKE_CURRENT_SOURCE_DIR}/${name}.cpp)
    return()
  endif()
  add_executable(foreshard-${name} ${name}.cpp)
  foreshard_compile(foreshard-${name})
  target_link_libraries(foreshard-${name} PRIVATE ${ARGN})
  install(TARGETS foreshard-${name})
endfunction()

# foreshard_hosts_module(program): a module that it loads finds in it what that has of the rest of Foreshard.
function(foreshard_hosts_module program)
  set(libraries "")
  foreach(library base model plan trace exec kernels comm engine)
    list(APPEND libraries foreshard_${library})
  endforeach()
  set_target_properties(${program} PROPERTIES ENABLE_EXPORTS ON LINK_LIBRARY_OVERRIDE "WHOLE_ARCHIVE,$<JOIN:${libraries},$<COMMA>>")
endfunction()

# foreshard_hosts_cuda(program): it can load the CUDA engine, where there is one.
function(foreshard_hosts_cuda program)
  if(NOT TARGET foreshard_cuda)
    return()
  endif()
  foreshard_hosts_module(${program})
  add_dependencies(${program} foreshard_cuda)
endfunction()

# What a test that starts mpirun needs: Open MPI refuses root and more ranks than cores unless told otherwise, and leaks memory of
# its own, so only leaks are not looked for under the address sanitizer.
set(FORESHARD_MPI_ENVIRONMENT OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1 OMP_NUM_THREADS=1
    ASAN_OPTIONS=detect_leaks=0)

# The tests that run several threads, which are what the thread sanitizer is for.
add_custom_target(threaded_tests)

# Seconds after which a test is taken to hang; sanitizers slow some down by more than four times.
set(FORESHARD_TEST_TIMEOUT 600)
if(FORESHARD_SANITIZE)
  set(FORESHARD_TEST_TIMEOUT 2400)
endif()

# foreshard_test(name [THREADS] [LONG sanitizers...] [LABEL label] [RANKS n...] LIBRARIES libs...): one GoogleTest binary of all *.cpp beside
# the caller.
# THREADS: it runs several threads; it has the label threads besides and is part of threaded_tests.
# LONG: it takes long for its many combinations of settings; these sanitizers, which are about code, run every sixth (address) or twelfth
# (thread) of its cases.
# With RANKS the binary has its own main and runs under mpirun, once per rank count, with the label mpi besides.
function(foreshard_test name)
  cmake_parse_arguments(ARG "THREADS" "LABEL" "LONG;RANKS;LIBRARIES" ${ARGN})
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*.cpp)
  if(NOT sources)
    return()
  endif()
  add_executable(${name} ${sources})
  foreshard_compile(${name})
  # Tests are compiled more often than run: -O2 would take a quarter longer.
  target_compile_options(${name} PRIVATE $<$<NOT:$<CONFIG:Debug>>:-O1>)
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR}/tests)
  target_link_libraries(${name} PRIVATE ${ARG_LIBRARIES} GTest::gtest GTest::gmock)
  if(ARG_RANKS)
    foreach(ranks ${ARG_RANKS})
      add_test(NAME ${name}_${ranks}_ranks COMMAND ${MPIEXEC_EXECUTABLE} ${MPIEXEC_NUMPROC_FLAG} ${ranks} ${MPIEXEC_PREFLAGS} $<TARGET_FILE:${name}>)
      set_tests_properties(${name}_${ranks}_ranks PROPERTIES LABELS "mpi;${ARG_LABEL}" PROCESSORS ${ranks} TIMEOUT 300 ENVIRONMENT "${FORESHARD_MPI_ENVIRONMENT}")
    endforeach()
  else()
    target_link_libraries(${name} PRIVATE GTest::gtest_main)
    add_test(NAME ${name} COMMAND ${name})
    if(NOT ARG_LABEL)
      set(ARG_LABEL unit)
    endif()
    if(ARG_THREADS)
      list(APPEND ARG_LABEL threads)
      add_dependencies(threaded_tests ${name})
    endif()
    if(ARG_LONG)
      set_tests_properties(${name} PROPERTIES COST 100)  # begins first
    endif()
    string(REGEX MATCH "address|thread" sanitizer "${FORESHARD_SANITIZE}")
    if(sanitizer AND sanitizer IN_LIST ARG_LONG)
      set(address_shards 6)
      set(thread_shards 12)
      set_tests_properties(${name} PROPERTIES ENVIRONMENT_MODIFICATION "GTEST_TOTAL_SHARDS=set:${${sanitizer}_shards};GTEST_SHARD_INDEX=set:0")
    endif()
    set_tests_properties(${name} PROPERTIES LABELS "${ARG_LABEL}" TIMEOUT ${FORESHARD_TEST_TIMEOUT} ENVIRONMENT "OMP_NUM_THREADS=1")
  endif()
endfunction()
