# What runs of all ranks as threads are made of, for programs with suites of this folder that are not all of it.
set(parity_frame local_run combinations families pairwise)
list(TRANSFORM parity_frame PREPEND ${PROJECT_SOURCE_DIR}/tests/parity/)
list(TRANSFORM parity_frame APPEND .cpp)
set(parity_folder ${PROJECT_SOURCE_DIR}/tests/parity)
