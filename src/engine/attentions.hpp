#pragma once
#include <compare>
#include <set>
#include <string>

#include "kernels/backend.hpp"
#include "plan/plan.hpp"

namespace foreshard::engine {

/// An attention of a plan, with all that its kernel depends on; its backward has the same.
struct AttentionCall {
  kernels::Attention shape;
  DType dtype = DType::f32;
  bool biased = false;  ///< by distance, as T5's
  bool packed = false;  ///< queries, keys and values lie in one row
  auto operator<=>(const AttentionCall&) const = default;
};

std::set<AttentionCall> attentions_of(const plan::Plan& plan);

/// As choices name it: "attention bf16 1x1024x12x64 kv12 causal", of batch, tokens, heads and their width.
std::string name_of(const AttentionCall& call);

}  // namespace foreshard::engine
