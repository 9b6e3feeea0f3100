#include "engine/cuda/product_algorithms.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <sstream>

#include "base/error.hpp"
#include "engine/cuda/memory.hpp"
#include "engine/cuda/stopwatch.hpp"

namespace foreshard::engine::cuda {
namespace {

using kernels::Const;
using kernels::Matmul;
using kernels::Mut;
using kernels::cuda::Algorithm;
using kernels::cuda::Fused;
using kernels::cuda::Kernels;

constexpr std::size_t most_candidates = 8;

std::string_view name_of(Fused fused) {
  constexpr std::string_view names[] = {"", " gelu", " gelu_backward", " bias_grad"};
  return names[static_cast<std::size_t>(fused)];
}

Algorithm parsed(const std::string& text, const std::string& product) {
  Algorithm algorithm{};
  std::istringstream words(text);
  words >> std::hex;
  for (std::uint64_t& word : algorithm.choice) words >> word;
  if (!(words >> algorithm.workspace_bytes))
    throw InputError(ExitCode::bad_input, fmt::format("\"{}\" is no algorithm for {}: expected nine hexadecimal words; "
                                                      "begin the run anew, without this checkpoint's choices",
                                                      text, product));
  return algorithm;
}

/// Operands of zeros: a product's time hardly depends on their values.
class Trial {
 public:
  Trial(const Product& product, const Stream& stream, Kernels& kernels)
      : product_(product), kernels_(kernels), stopwatch_(stream) {}

  double seconds(const Algorithm& algorithm) {
    kernels_.set_algorithm(m_, product_.types, algorithm);
    return stopwatch_.seconds([this] { product_.types.fused == Fused::nothing ? plain() : fused(); });
  }

  /// Of a fused product, its two ops one by one.
  double seconds_apart() {
    return stopwatch_.seconds([this] {
      plain();
      next();
    });
  }

 private:
  static std::int64_t bytes(std::int64_t count, DType dtype) { return count * size_bytes(dtype); }

  Const a() const { return {a_.data(), product_.types.operands}; }
  Const b() const { return {b_.data(), product_.types.operands}; }
  Const bias() const { return {product_.types.bias ? bias_.data() : nullptr, product_.types.operands}; }
  Mut c() const { return {c_.data(), product_.types.result}; }
  Mut other() const { return {other_.data(), product_.types.result}; }

  void plain() { kernels_.matmul(m_, a(), b(), bias(), c()); }
  void fused() { kernels_.matmul(m_, product_.types.fused, a(), b(), bias(), c(), other()); }
  void next() {
    const Const read{other_.data(), product_.types.result};
    if (product_.types.fused == Fused::gelu) return kernels_.gelu(m_.m * m_.n, read, c());
    if (product_.types.fused == Fused::gelu_backward)
      return kernels_.gelu_backward(m_.m * m_.n, {c_.data(), read.dtype}, read, c());
    kernels_.bias_grad({.rows = m_.k, .cols = m_.m}, false, a(), other());
  }

  const Product& product_;
  Kernels& kernels_;
  Stopwatch stopwatch_;
  const Matmul& m_ = product_.matmul;
  DeviceMemory a_{bytes(m_.m * m_.k, product_.types.operands)}, b_{bytes(m_.k * m_.n, product_.types.operands)},
      c_{bytes(m_.m * m_.n, product_.types.result)}, bias_{bytes(m_.n, product_.types.operands)},
      other_{product_.types.fused == Fused::nothing ? 0 : bytes(m_.m * m_.n, product_.types.result)};
};

/// None where the library has none, or only fused ones that are slower than the two ops. The one that is returned is
/// set, so that a fused product is compared with the best of its plain one, which comes before it.
std::optional<Algorithm> fastest(const Product& product, const Stream& stream, Kernels& kernels) {
  std::vector<Algorithm> all = kernels.candidates(product.matmul, product.types);
  all.resize(std::min(all.size(), most_candidates));
  if (all.empty()) return std::nullopt;
  Trial trial(product, stream, kernels);
  std::vector<double> seconds;
  for (const Algorithm& one : all) seconds.push_back(trial.seconds(one));
  const auto least = std::ranges::min_element(seconds);
  if (product.types.fused != Fused::nothing && trial.seconds_apart() <= *least) return std::nullopt;
  const Algorithm& best = all[static_cast<std::size_t>(least - seconds.begin())];
  kernels.set_algorithm(product.matmul, product.types, best);
  return best;
}

}  // namespace

std::string name_of(const Product& p) {
  return fmt::format("matmul {}->{} {}x{}x{}{}{}{}{}{}", foreshard::name_of(p.types.operands),
                     foreshard::name_of(p.types.result), p.matmul.m, p.matmul.n, p.matmul.k,
                     p.matmul.transpose_a ? " ta" : "", p.matmul.transpose_b ? " tb" : "",
                     p.matmul.accumulate ? " add" : "", p.types.bias ? " bias" : "", name_of(p.types.fused));
}

std::string text_of(const Algorithm& algorithm) {
  return fmt::format("{:x} {:x}", fmt::join(algorithm.choice, " "), algorithm.workspace_bytes);
}

KernelChoices measure_algorithms(const plan::Plan& plan, const Stream& stream, Kernels& kernels) {
  KernelChoices choices;
  for (const Product& product : products_of(plan)) try {
      if (const auto algorithm = fastest(product, stream, kernels))
        choices.emplace(name_of(product), text_of(*algorithm));
    } catch (const LibraryError&) {  // no memory left for the trial
      continue;
    }
  return choices;
}

void use_algorithms(const KernelChoices& choices, const plan::Plan& plan, Kernels& kernels) {
  for (const Product& product : products_of(plan)) {
    const auto chosen = choices.find(name_of(product));
    if (chosen != choices.end())
      kernels.set_algorithm(product.matmul, product.types, parsed(chosen->second, chosen->first));
  }
}

}  // namespace foreshard::engine::cuda
