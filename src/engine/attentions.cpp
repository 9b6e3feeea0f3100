#include "engine/attentions.hpp"

#include <fmt/format.h>

#include "engine/kernel_calls.hpp"

namespace foreshard::engine {

std::set<AttentionCall> attentions_of(const plan::Plan& plan) {
  std::set<AttentionCall> calls;
  for (const plan::Op& op : plan.ops) {
    if (op.kind != plan::OpKind::attention && op.kind != plan::OpKind::full_attention) continue;
    const auto inputs = plan.inputs(op);
    const bool biased = inputs.size() > 3 && inputs[3].present();
    calls.insert({attention_of(op, biased), inputs[0].dtype, biased, !inputs[1].present()});
  }
  return calls;
}

std::string name_of(const AttentionCall& call) {
  const kernels::Attention& o = call.shape;
  return fmt::format("attention {} {}x{}x{}x{} kv{}{}{}{}{}", name_of(call.dtype), o.batch, o.seq, o.heads, o.width,
                     o.keys(), o.causal ? " causal" : "", o.window > 0 ? fmt::format(" window{}", o.window) : "",
                     o.alibi > 0 ? " alibi" : "", call.biased ? " biased" : "");
}

}  // namespace foreshard::engine
