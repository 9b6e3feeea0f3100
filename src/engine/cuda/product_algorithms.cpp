#include "engine/cuda/product_algorithms.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <sstream>

#include "base/error.hpp"
#include "engine/cuda/memory.hpp"
#include "engine/products.hpp"
#include "kernels/cuda/check.hpp"

namespace foreshard::engine::cuda {
namespace {

using kernels::Matmul;
using kernels::cuda::Algorithm;
using kernels::cuda::Kernels;
using kernels::cuda::MatmulTypes;

constexpr std::size_t most_candidates = 8;
constexpr int repeats = 7;

struct Product {
  Matmul matmul;
  MatmulTypes types;
  auto operator<=>(const Product&) const = default;
};

std::set<Product> products_of(const plan::Plan& plan) {
  std::set<Product> products;
  for (const plan::Op& op : plan.ops)
    if (const auto matmul = product_of(op)) {
      const bool bias = op.input_count > 2 && plan.inputs(op)[2].present();
      products.insert({*matmul, {plan.inputs(op)[0].dtype, plan.outputs(op)[0].dtype, bias}});
    }
  return products;
}

std::string name_of(const Product& p) {
  return fmt::format("matmul {}->{} {}x{}x{}{}{}{}{}", foreshard::name_of(p.types.operands),
                     foreshard::name_of(p.types.result), p.matmul.m, p.matmul.n, p.matmul.k,
                     p.matmul.transpose_a ? " ta" : "", p.matmul.transpose_b ? " tb" : "",
                     p.matmul.accumulate ? " add" : "", p.types.bias ? " bias" : "");
}

std::string text_of(const Algorithm& algorithm) {
  return fmt::format("{:x} {:x}", fmt::join(algorithm.choice, " "), algorithm.workspace_bytes);
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
      : product_(product), stream_(stream), kernels_(kernels) {}

  double seconds(const Algorithm& algorithm) {
    kernels_.set_algorithm(product_.matmul, product_.types, algorithm);
    run();
    std::vector<double> times;
    for (int i = 0; i < repeats; ++i) times.push_back(timed());
    std::ranges::nth_element(times, times.begin() + repeats / 2);
    return times[repeats / 2];
  }

 private:
  static std::int64_t bytes(std::int64_t count, DType dtype) { return count * size_bytes(dtype); }

  void run() {
    const auto [operands, result, bias] = product_.types;
    kernels_.matmul(product_.matmul, {a_.data(), operands}, {b_.data(), operands},
                    {bias ? bias_.data() : nullptr, operands}, {c_.data(), result});
  }

  double timed() {
    stream_.record(begin_);
    run();
    stream_.record(end_);
    kernels::cuda::check(cudaEventSynchronize(end_.get()), "cudaEventSynchronize");
    return elapsed_ns(begin_, end_) * 1e-9;
  }

  const Product& product_;
  const Stream& stream_;
  Kernels& kernels_;
  const Matmul& m_ = product_.matmul;
  DeviceMemory a_{bytes(m_.m * m_.k, product_.types.operands)}, b_{bytes(m_.k * m_.n, product_.types.operands)},
      c_{bytes(m_.m * m_.n, product_.types.result)}, bias_{bytes(m_.n, product_.types.operands)};
  Event begin_{Event::Kind::time}, end_{Event::Kind::time};
};

Algorithm fastest(const Product& product, const Stream& stream, Kernels& kernels) {
  std::vector<Algorithm> all = kernels.candidates(product.matmul, product.types);
  all.resize(std::min(all.size(), most_candidates));
  Trial trial(product, stream, kernels);
  std::vector<double> seconds;
  for (const Algorithm& one : all) seconds.push_back(trial.seconds(one));
  return all[static_cast<std::size_t>(std::ranges::min_element(seconds) - seconds.begin())];
}

}  // namespace

KernelChoices measure_algorithms(const plan::Plan& plan, const Stream& stream, Kernels& kernels) {
  KernelChoices choices;
  for (const Product& product : products_of(plan)) try {
      choices.emplace(name_of(product), text_of(fastest(product, stream, kernels)));
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
