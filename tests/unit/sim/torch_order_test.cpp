// The order in which PyTorch's FSDP1 and FSDP2 issue their collectives around each unit's compute: ours in all settings
// and steps that torch 2.15.0 was run in (tests/golden/make_fsdp_collective_order.py), word by word.
#include <gtest/gtest.h>

#include <array>
#include <fstream>
#include <memory>
#include <sstream>
#include <string>

#include "sim/runtimes/fsdp1.hpp"
#include "sim/runtimes/fsdp2.hpp"
#include "sim/runtimes/torch_prediction.hpp"

namespace foreshard::sim::torch {
namespace {

constexpr std::array<std::int64_t, 5> widths{8, 16, 24, 40, 56};
constexpr std::int64_t outputs = 3, rows = 2;

struct Setting {
  bool fsdp1 = false, no_sync = false;
  int micro_batches = 1, step = 1;
  WrapOptions wrap;
  std::string order;
};

WrapOptions strategy_of(const std::string& name) {
  WrapOptions options;
  options.compute = DType::f32;
  options.reshard = name == "full" || name == "hybrid";
  options.world = name == "no" ? 1 : name.starts_with("hybrid") ? 4 : 8;
  options.replicas = 8 / options.world;
  return options;
}

Setting parse(const std::string& line) {
  std::vector<std::string> w;
  std::istringstream stream(line);
  for (std::string word; std::getline(stream, word, ',');) w.push_back(word);
  Setting s{w.at(0) == "fsdp1", w.at(6) == "True",    std::stoi(w.at(5)),
            std::stoi(w.at(7)), strategy_of(w.at(1)), w.at(8)};
  if (w[2] == "post") s.wrap.backward_prefetch = BackwardPrefetch::post;
  if (w[2] == "none") s.wrap.backward_prefetch = BackwardPrefetch::none;
  s.wrap.forward_prefetch = w[3] == "True";
  if (!w[4].empty()) s.wrap.prefetch_depth = std::stoi(w[4]);
  return s;
}

UnitShapes unit_shapes() {
  UnitShapes units{{{widths[0], widths[0]}, {widths[0]}, {outputs, widths.back()}, {outputs}}};
  for (std::size_t i = 0; i + 1 < widths.size(); ++i) units.push_back({{widths[i + 1], widths[i]}, {widths[i + 1]}});
  return units;
}

std::string name_of(std::size_t unit) { return unit == 0 ? "root" : "u" + std::to_string(unit - 1); }

const Cluster& cluster() {
  static const Cluster one = read_cluster("dgx-a100");
  return one;
}

/// Writes down what the wrapper issues and where each block's linear operator begins.
class Recording {
 public:
  explicit Recording(const Setting& setting)
      : setting_(setting),
        kernels_(cluster(), {}, setting.wrap.world, setting.wrap.replicas),
        gpu_(kernels_, {}),
        eager_(live_, {}, &gpu_) {
    gpu_.keep_trace();
    WrapOptions options = setting.wrap;
    options.on_issue = [this](Collective kind, std::size_t unit) {
      constexpr std::array words{"AG:", "RS:", "AR:"};
      order_ += words[static_cast<std::size_t>(kind)] + name_of(unit) + ' ';
    };
    if (setting.fsdp1)
      wrapper_ = std::make_unique<Fsdp1>(eager_, unit_shapes(), options);
    else
      wrapper_ = std::make_unique<Fsdp2>(eager_, unit_shapes(), options);
  }

  std::string step() {
    order_.clear();
    gpu_.begin_step();
    for (int k = 0; k < setting_.micro_batches; ++k) {
      order_ += "|micro" + std::to_string(k) + ' ';
      gpu_.begin_micro_batch();
      const bool last = k + 1 == setting_.micro_batches;
      wrapper_->begin_micro_batch(last || !setting_.no_sync, last);
      const Tensor loss = forward();
      eager_.autograd().run(loss, [this] { wrapper_->end_backward(); });
    }
    wrapper_->zero_grad();
    return order_ + "|step";
  }

  /// The last step, from what its kernels and collectives say.
  std::string as_it_ran() const { return order_text(gpu_.ran(), gpu_.micro_batch_starts()); }

 private:
  Tensor block(std::size_t unit, const Tensor& x) {
    return wrapper_->forward(unit, x, [&](const Tensor& input) {
      order_ += "F:" + name_of(unit) + ' ';
      const auto& p = wrapper_->parameters(unit);
      const Tensor y = eager_.linear(input, p[0], p[1], rows);
      y.edge.node->pre.emplace_back([this, unit] { order_ += "B:" + name_of(unit) + ' '; });
      return eager_.tanh(y);
    });
  }

  Tensor forward() {
    return wrapper_->forward(0, {}, [&](const Tensor&) {
      const auto& p = wrapper_->parameters(0);
      const Tensor input{eager_.empty(rows * widths[0], DType::f32), rows * widths[0], DType::f32, {}};
      Tensor x = eager_.linear(input, p[0], p[1], rows);
      for (std::size_t unit = 1; unit < widths.size(); ++unit) x = block(unit, x);
      return eager_.linear(x, p[2], p[3], rows);
    });
  }

  Setting setting_;
  GpuKernels kernels_;
  Gpu gpu_;
  LiveBytes live_;
  Eager eager_;
  std::unique_ptr<Wrapper> wrapper_;
  std::string order_;
};

TEST(TorchOrder, IsPyTorchsInEverySetting) {
  std::ifstream file(FORESHARD_GOLDEN_DIR "/fsdp_collective_order.csv");
  std::string line;
  std::getline(file, line);
  int settings = 0;
  for (; std::getline(file, line); ++settings) {
    const Setting setting = parse(line);
    Recording recording(setting);
    std::string order;
    for (int step = 0; step < setting.step; ++step) order = recording.step();
    EXPECT_EQ(order, setting.order) << line;
    EXPECT_EQ(recording.as_it_ran(), setting.order) << line;
  }
  EXPECT_EQ(settings, 252);
}

}  // namespace
}  // namespace foreshard::sim::torch
