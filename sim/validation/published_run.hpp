#pragma once
#include <optional>
#include <string>
#include <variant>

#include "sim/validation/published_row.hpp"

namespace foreshard::sim::validation {

/// The software that ran.
enum class Runtime : std::uint8_t { pytorch_ddp, pytorch_fsdp1, pytorch_fsdp2, deepspeed, megatron, xla, hand_written };
std::string_view name_of(Runtime runtime);

/// What ranks share out, as ZeRO counts it: nothing, optimizer state, gradients too, parameters too.
enum class ZeroStage : std::uint8_t { none, optimizer, gradients, parameters };

/// `cudnn`: of cuDNN, as Transformer Engine, XLA and hand-written CUDA call it.
enum class AttentionKind : std::uint8_t { unknown, math, flash1, triton, flash2, flash3, cudnn };

/// The numbers that matrix products work on.
enum class ProductType : std::uint8_t { f32, half, fp8, fp4 };

/// Who casts to fp8 and how: kernels around the cast do most of it; a compiler, with one scale a tensor or one a row.
enum class Casts : std::uint8_t { fused, tensorwise, rowwise };

/// Which peak memory was printed.
enum class PeakKind : std::uint8_t { unknown, allocated, active, reserved, device };

/// A published run in the terms of a simulator. Where the row is silent, what is assumed stands here.
struct PublishedRun {
  std::int64_t layers = 0, width = 0, heads = 0, kv_heads = 0, ffn_width = 0, vocab_size = 0, seq_len = 0;
  bool gated_mlp = false;  ///< three matrices instead of two: of models after Llama
  bool tied_head = true;   ///< one table for tokens and logits
  std::string gpu;
  double gpu_memory_gb = 0;  ///< as printed; 0: not
  int gpus = 1, gpus_per_node = 8;
  std::optional<double> node_gbit_per_s;  ///< network of a node, where printed

  Runtime runtime = Runtime::pytorch_fsdp1;
  ZeroStage stage = ZeroStage::parameters;
  int shard_degree = 1;                ///< of what is shared out
  bool shard_degree_stated = true;     ///< false: within a node, or over all where that does not fit
  bool reshards_after_forward = true;  ///< assumed where parameters are shared out
  ProductType products = ProductType::half;
  Casts casts = Casts::fused;
  int gather_bytes = 2;    ///< of a parameter element on the wire
  int reduce_bytes = 2;    ///< of a gradient element on the wire
  bool autocasts = false;  ///< products cast parameters, which are in fp32
  std::int64_t micro_batch = 1, micro_batches = 1;
  double recomputed = 0;             ///< part of the blocks whose forward is computed again
  bool recomputation_stated = true;  ///< false: none, or of all blocks where they do not fit without
  bool recomputes_selected = false;  ///< some operators of every block, every other product among them
  AttentionKind attention = AttentionKind::unknown;
  bool compiled = false;
  bool plans_saving = true;  ///< a compiler that chooses what to save, as torch.compile does; Thunder does not
  bool offloads = false, lora = false;
  int lora_rank = 16;
  bool lora_of_all_products = true;         ///< else of queries and values
  bool four_bit_base = false;               ///< frozen parameters of 4 bits
  bool four_bit_scales = false;             ///< whose scales are quantised too
  bool pure_half = false;                   ///< parameters, gradients and moments are halves
  bool copies_gradients_to_buckets = true;  ///< where they are reduced and not sharded; Thunder's DDP does not
  bool updates_one_by_one = false;          ///< the optimizer goes over units in turn
  PeakKind peak_kind = PeakKind::unknown;
  bool evaluates_metrics = false;          ///< training metrics of the logits, each micro-batch
  bool stops_recomputation_early = false;  ///< the last product of a block is not computed again
  bool prefetches_in_backward = true;      ///< false: a block is gathered after the backward of the one before
};

/// Why a row cannot be used.
struct Skip {
  std::string reason;
};

/// Reads a row's printed words. Skipped are rows that are not plain data parallelism, that are excluded, whose shape is
/// not complete, or whose settings are not stated and may not be assumed.
std::variant<PublishedRun, Skip> interpret(const PublishedRow& row);

/// What a row measured, in tokens per second and GPU: as printed, or from its step time, or from its TFLOPS or MFU of
/// 6·N + 12·layers·width·seq FLOPs a token (`peak_tflops` of the GPU); one source counts the width of keys alone.
/// Absent where nothing says it.
std::optional<double> measured_tokens_per_s(const PublishedRow& row, const PublishedRun& run, double peak_tflops);

}  // namespace foreshard::sim::validation
