// What the CUDA kernels take from the step in device memory, against the same with values by argument.
#include <numeric>

#include "engine/step_sums.hpp"
#include "kernels/exact_sum.hpp"
#include "rehearsal/kernels/device_fixture.hpp"

namespace foreshard::kernels::cuda {
namespace {

using Floats = Array<float>;

Step plain_step() {
  Step step{};
  step.dropout_key = 42;
  step.learning_rate = 0.01;
  step.beta1 = 0.9;
  step.beta2 = 0.95;
  step.epsilon = 1e-8;
  step.momentum = 0.9;
  step.loss_scale = 4;
  step.micro_batch = 3;
  step.fault_micro_batch = -1;
  step.fault_row = -1;
  return step;
}

using OfStep = OnStream;

TEST_F(OfStep, LoadsThePartOfItsMicroBatchAndGoesOn) {
  std::vector<std::int32_t> staged(40);
  std::iota(staged.begin(), staged.end(), 0);
  const DeviceArray<std::int32_t> tokens(staged), part(std::vector<std::int32_t>(8));
  const DeviceArray<Step> step({plain_step()});
  kernels->load_micro_batch(step.data(), 8, tokens, part);
  kernels->advance(step.data());
  EXPECT_EQ(part.values(), std::vector<std::int32_t>(staged.begin() + 24, staged.begin() + 32));
  EXPECT_EQ(step.value().micro_batch, 4);
}

TEST_F(OfStep, LoadsImagesInTheTypeOfTheModel) {
  const Floats staged = Floats::random(4 * 301, 1);
  const DeviceArray<float> images(staged), same(Floats(301));
  const DeviceArray<BFloat16> rounded(std::vector<BFloat16>(301));
  const DeviceArray<Step> step({plain_step()});
  kernels->load_micro_batch(step.data(), 301, images, same);
  kernels->load_micro_batch(step.data(), 301, images, rounded);
  const std::vector<float> part(staged.data.begin() + 3 * 301, staged.data.end());
  EXPECT_EQ(same.values(), part);
  const std::vector<BFloat16> halves = rounded.values();
  for (std::size_t i = 0; i < part.size(); ++i)
    EXPECT_EQ(static_cast<float>(halves[i]), static_cast<float>(BFloat16(part[i])));
}

TEST_F(OfStep, DropsByItsKeyAndMicroBatch) {
  const DeviceArray<float> x(Floats::random(100, 1)), y(Floats(100)), truth(Floats(100));
  const DeviceArray<Step> step({plain_step()});
  kernels->dropout(step.data(), {.count = 100, .probability = 0.3F, .key = 1, .stream = 7, .first = 8}, x, y);
  kernels->dropout({.count = 100, .probability = 0.3F, .key = 42, .stream = std::uint64_t{3} << 32 | 7, .first = 8}, x,
                   truth);
  EXPECT_EQ(y.values(), truth.values());
}

TEST_F(OfStep, ScalesTheGradientOfTheLoss) {
  const Rows o{5, 17};
  const DeviceArray<float> logits(Floats::random(85, 1)), lse(Floats(5)), d(Floats(85)), truth(Floats(85));
  const DeviceArray<std::int32_t> targets(random_tokens(5, 17, 2));
  const DeviceArray<double> loss(std::vector<double>(2));
  const DeviceArray<Step> step({plain_step()});
  kernels->cross_entropy(step.data(), o, logits, targets, loss, lse);
  kernels->cross_entropy_backward(step.data(), o, logits, targets, lse, d);
  kernels->cross_entropy_backward(o, 4, logits, targets, lse, truth);
  EXPECT_EQ(d.values(), truth.values());
  EXPECT_EQ(step.value().fault_micro_batch, -1);
}

TEST_F(OfStep, NotesTheFirstMicroBatchAndRowThatIsNotFinite) {
  const Rows o{5, 17};
  Floats x = Floats::random(85, 1);
  x[3 * 17 + 2] = NAN;
  const DeviceArray<float> sound(Floats::random(85, 1)), broken(x), lse(Floats(5));
  const DeviceArray<std::int32_t> targets(random_tokens(5, 17, 2));
  const DeviceArray<double> loss(std::vector<double>(2));
  const DeviceArray<Step> step({plain_step()});
  kernels->cross_entropy(step.data(), o, sound, targets, loss, lse);
  for (int micro_batch = 0; micro_batch < 2; ++micro_batch) {
    kernels->advance(step.data());
    kernels->cross_entropy(step.data(), o, broken, targets, loss, lse);
  }
  EXPECT_EQ(step.value().fault_micro_batch, 4);
  EXPECT_EQ(step.value().fault_row, 3);
}

TEST_F(OfStep, GivesNoNumberForATokenOutsideTheVocabulary) {
  const DeviceArray<std::int32_t> tokens(std::vector<std::int32_t>{0, 4, -1});
  const DeviceArray<float> table(Floats::random(8, 1)), x(Floats(6));
  kernels->embedding({3, 2, 4, 3}, tokens, table, {}, x);
  const std::vector<float> rows = x.values();
  EXPECT_FALSE(std::isnan(rows[0]) || std::isnan(rows[1]));
  for (int i = 2; i < 6; ++i) EXPECT_TRUE(std::isnan(rows[i]));
}

/// A shard of parts of parameters with what lies between them, which no update may touch. Of the third, elements and
/// shard have the same places in calls of Philox, of the fourth not.
struct Shards {
  static constexpr std::int64_t count = 5000;
  Floats p = Floats::random(count, 1), m = Floats::random(count, 2), v = Floats(count, 0.5F);
  Array<BFloat16> g = Array<BFloat16>::random(count, 3);
  std::vector<Part> parts = {{0, 7, 2, 3}, {9, 1, 0, 5}, {13, 4800, 1, 21}, {4820, 170, 0, 1}};
  std::vector<Rule> rules = {{1, 0, 4}, {0.5, 0.1, 7}, {2, 0.2, 1}};
};

struct Norms {
  float power;
  std::vector<std::int64_t> words;
};
std::vector<Norms> norms_of(const Array<BFloat16>& g) {
  std::vector<Norms> all;
  const auto reference = make_reference();
  for (const int power : {1, 2, 3}) {
    std::vector<std::int64_t> words(ExactSum::words);
    reference->add_powers(power, g.size(), g, std::span<std::int64_t, ExactSum::words>(words));
    all.push_back({static_cast<float>(power), words});
  }
  std::int64_t largest = 0;
  reference->max_magnitude(g.size(), g, largest);
  all.push_back({INFINITY, {largest - 1000, largest, 5}});
  return all;
}

void update_by_argument(Kernels& kernels, Optimizer optimizer, const Update& o, Const g, Mut p, Mut m, Mut v) {
  switch (optimizer) {
    case Optimizer::adamw:
      return kernels.adamw(o, g, p, m, v);
    case Optimizer::adam:
      return kernels.adam(o, g, p, m, v);
    case Optimizer::sgd:
      return kernels.sgd(o, g, p, {});
    case Optimizer::sgd_momentum:
      return kernels.sgd(o, g, p, m);
    case Optimizer::lion:
      return kernels.lion(o, g, p, m);
  }
}

std::int64_t part_count(const Shards& s) { return static_cast<std::int64_t>(s.parts.size()); }

template <class T>
auto part_of(const DeviceArray<T>& array, const Part& part) {
  return Mut{array.data() + part.at, dtype_of<T>};
}

/// Parameters of type T and the optimizer's state, on the device.
template <class T>
struct State {
  State(const Array<T>& parameters, const Shards& s) : p(parameters), m(s.m), v(s.v) {}
  DeviceArray<T> p;
  DeviceArray<float> m, v;
};

std::vector<float> bits_of(const std::vector<float>& values) { return values; }
std::vector<std::uint16_t> bits_of(const std::vector<BFloat16>& values) {
  std::vector<std::uint16_t> bits;
  for (const BFloat16& value : values) bits.push_back(value.bits);
  return bits;
}

template <class T>
void expect_equal(const State<T>& seen, const State<T>& truth) {
  EXPECT_EQ(bits_of(seen.p.values()), bits_of(truth.p.values()));
  EXPECT_EQ(seen.m.values(), truth.m.values());
  EXPECT_EQ(seen.v.values(), truth.v.values());
}

/// The sums that an update needs: of the loss, and of tokens.
using LossSums = std::vector<double>;
const LossSums sound_loss = {12.5, 640};

/// Updates all parts at once, with what lies in device memory.
template <class T>
void update_parts(Kernels& kernels, Optimizer optimizer, const Step& step, const Norms& norms, const LossSums& loss,
                  const Shards& s, const State<T>& state) {
  const DeviceArray<BFloat16> g(s.g);
  const DeviceArray<Step> steps({step});
  const DeviceArray<Rule> rules(s.rules);
  const DeviceArray<Part> parts(s.parts);
  const DeviceArray<std::int64_t> words(norms.words);
  const DeviceArray<double> sums(loss);
  kernels.update(optimizer, steps.data(), rules.data(), parts.data(), part_count(s), Shards::count, norms.power,
                 words.data(), static_cast<std::int64_t>(norms.words.size()), sums.data(), g, state.p, state.m,
                 state.v);
  check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
}

/// Updates part by part, by argument, as engine::Dispatch does on the CPU.
template <class T>
void update_parts_by_argument(Kernels& kernels, Optimizer optimizer, const Step& step, const Norms& norms,
                              const LossSums& loss, const Shards& s, const State<T>& state) {
  const engine::StepSums sums = engine::step_sums(norms.power, norms.words, loss.data(), step.loss_scale);
  if (!sums.finite()) return;
  const DeviceArray<BFloat16> g(s.g);
  for (const Part& part : s.parts) {
    const Rule& rule = s.rules[part.rule];
    Update o{.count = part.count,
             .step = rule.update,
             .learning_rate = step.learning_rate * rule.learning_rate_scale,
             .beta1 = step.beta1,
             .beta2 = step.beta2,
             .epsilon = step.epsilon,
             .weight_decay = rule.weight_decay,
             .grad_scale = sums.gradient_scale(step.max_norm, step.loss_scale),
             .clip_value = step.clip_value > 0 ? step.clip_value : HUGE_VAL,
             .momentum = step.momentum,
             .nesterov = step.nesterov != 0,
             .rounding = {.stochastic = step.stochastic_rounding != 0,
                          .key = step.rounding_key,
                          .stream = static_cast<std::uint64_t>(part.rule),
                          .first = static_cast<std::uint64_t>(part.first)}};
    const Mut grad = part_of(g, part);
    update_by_argument(kernels, optimizer, o, {grad.data, grad.dtype}, part_of(state.p, part), part_of(state.m, part),
                       part_of(state.v, part));
  }
  check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
}

TEST_F(OfStep, UpdatesPartsAsTheyWouldBeOneByOne) {
  const Shards s;
  for (const Norms& norms : norms_of(s.g)) {
    for (const double max_norm : {0.0, 0.5}) {
      for (int optimizer = 0; optimizer < 5; ++optimizer) {
        SCOPED_TRACE(testing::Message() << "power " << norms.power << " max norm " << max_norm << ' ' << optimizer);
        Step step = plain_step();
        step.max_norm = max_norm;
        step.clip_value = max_norm > 0 ? 1e-3 : 0;
        step.nesterov = max_norm > 0;
        const State<float> seen(s.p, s), truth(s.p, s);
        update_parts(*kernels, Optimizer(optimizer), step, norms, sound_loss, s, seen);
        update_parts_by_argument(*kernels, Optimizer(optimizer), step, norms, sound_loss, s, truth);
        expect_equal(seen, truth);
        EXPECT_NE(seen.p.values(), s.p.data);
      }
    }
  }
}

/// The key is read from the step in device memory, as captured graphs must.
TEST_F(OfStep, RoundsPartsInBf16AsTheyWouldBeOneByOne) {
  const Shards s;
  const Norms norms = norms_of(s.g)[1];
  const Array<BFloat16> halves(s.p);
  for (int optimizer = 0; optimizer < 5; ++optimizer) {
    SCOPED_TRACE(optimizer);
    std::vector<std::vector<std::uint16_t>> by_key;
    for (const std::uint64_t key : {1ULL, 2ULL}) {
      Step step = plain_step();
      step.rounding_key = key;
      step.stochastic_rounding = 1;
      const State<BFloat16> seen(halves, s), truth(halves, s);
      update_parts(*kernels, Optimizer(optimizer), step, norms, sound_loss, s, seen);
      update_parts_by_argument(*kernels, Optimizer(optimizer), step, norms, sound_loss, s, truth);
      expect_equal(seen, truth);
      by_key.push_back(bits_of(seen.p.values()));
    }
    EXPECT_NE(by_key[0], by_key[1]);
  }
}

TEST_F(OfStep, LeavesEverythingWhereTheVerdictIsNotFinite) {
  const Shards s;
  std::vector<std::int64_t> broken(ExactSum::words);
  add_exact(std::span<std::int64_t, ExactSum::words>(broken), NAN);
  const std::vector<std::int64_t> sound = norms_of(s.g)[1].words;
  for (const auto& [words, loss] : {std::pair{broken, 1.0}, {sound, INFINITY}, {sound, NAN}}) {
    const State<float> seen(s.p, s), truth(s.p, s);
    update_parts(*kernels, Optimizer::adamw, plain_step(), {2, words}, {loss, 640}, s, seen);
    expect_equal(seen, truth);
  }
}

TEST_F(OfStep, MarksItsProgressInHostMemory) {
  std::uint64_t* mark = nullptr;
  check(cudaHostAlloc(reinterpret_cast<void**>(&mark), sizeof *mark, cudaHostAllocMapped), "cudaHostAlloc");
  *mark = 0;
  std::uint64_t* on_device = nullptr;
  check(cudaHostGetDevicePointer(reinterpret_cast<void**>(&on_device), mark, 0), "cudaHostGetDevicePointer");
  kernels->mark(on_device, 77);
  check(cudaStreamSynchronize(stream), "cudaStreamSynchronize");
  EXPECT_EQ(*mark, 77U);
  cudaFreeHost(mark);
}

TEST_F(OfStep, MultipliesByTheAlgorithmThatWasSet) {
  const Matmul o{16, 8, 32};
  const MatmulTypes types{DType::bf16, DType::f32};
  const std::vector<Algorithm> found = kernels->candidates(o, types);
  ASSERT_FALSE(found.empty());
  const DeviceArray<BFloat16> a(Array<BFloat16>::random(16 * 32, 1)), b(Array<BFloat16>::random(32 * 8, 2));
  const DeviceArray<float> c(Floats(128)), again(Floats(128));
  kernels->matmul(o, a, b, {}, c);
  kernels->set_algorithm(o, types, found.front());
  kernels->matmul(o, a, b, {}, again);
  EXPECT_EQ(c.values(), again.values());
  Algorithm too_large = found.front();
  too_large.workspace_bytes = 2 << 20;
  EXPECT_THROW(kernels->set_algorithm(o, types, too_large), ContractError);
}

}  // namespace
}  // namespace foreshard::kernels::cuda
