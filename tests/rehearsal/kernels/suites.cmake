# The suites of tests/unit/kernels that say nothing that is only the CPU's: for rehearsed devices, and for real ones (tests/gpu/kernels).
set(suites attention cast cpu dropout elementwise full_attention gated grouped_attention half half_matmul image_tokens optimizer powers reattention relative_bias
    rms_norm rotary rounding window_attention)
list(TRANSFORM suites PREPEND ${PROJECT_SOURCE_DIR}/tests/unit/kernels/)
list(TRANSFORM suites APPEND _test.cpp)

# A kernel cannot throw: a token outside the vocabulary gives what is not a number. Scratch is what the CPU's products need.
set(cpu_only Cpu.EmbeddingRefusesTokensOutsideTheVocabulary:MatmulRoutes.ScratchIsBounded:AttentionRoutes.*)
