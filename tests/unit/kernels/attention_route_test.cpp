// Attention of bf16 heads by either route: widened to floats, or in pairs by the processor's dot products, with
// probabilities and the gradients of scores rounded to bf16.
#include "kernels/attention_route.hpp"

#include "attention_operands.hpp"

namespace foreshard::kernels {
namespace {

using Bf16s = Array<BFloat16>;

/// Rounded once, when stored; natively also p and ds, each of which enters sums of many.
double allowed_of(MatmulRoute route) { return (route == MatmulRoute::native ? 2 : 1.25) * allowed<BFloat16>; }

constexpr MatmulRoute routes[] = {MatmulRoute::native, MatmulRoute::widened};
const char* name_of(MatmulRoute route) { return route == MatmulRoute::native ? "native" : "widened"; }

struct Case {
  Attention o;
  bool biased;
};

/// Each combination of what can be on or off, at sizes around blocks of 64, vectors of 16 and pairs. Scores have linear
/// biases, others or none.
std::vector<Case> cases(std::initializer_list<std::int64_t> lengths, std::initializer_list<std::int64_t> widths) {
  std::vector<Case> all;
  for (const bool causal : {false, true})
    for (const auto& [alibi, biased] : {std::pair{0.0F, false}, {8.0F, false}, {0.0F, true}})
      for (const std::int64_t key_heads : {1, 4})
        for (const std::int64_t seq : lengths)
          for (const std::int64_t width : widths)
            all.push_back({{.batch = 2,
                            .seq = seq,
                            .heads = 4,
                            .width = width,
                            .key_heads = key_heads,
                            .alibi = alibi,
                            .causal = causal,
                            .scaled = width != 8},
                           biased});
  return all;
}

void expect_both_equal_reference(Backend& backend, const Case& c) {
  for (const MatmulRoute route : routes) {
    SCOPED_TRACE(name_of(route));
    backend.set_attention_routes({.otherwise = route});
    expect_equal_to_reference<BFloat16>(backend, c.o, allowed_of(route), c.biased);
  }
}

TEST(AttentionRoutes, BothEqualReference) {
  const auto cpu = make_cpu();
  for (const Case& c : cases({1, 17, 64, 65, 130}, {8, 17})) expect_both_equal_reference(*cpu, c);
}

TEST(AttentionRoutes, BothEqualReferenceWithinWindows) {
  const auto cpu = make_cpu();
  for (const std::int64_t window : {1, 2, 15, 16, 17, 63, 64, 65, 100})
    expect_both_equal_reference(
        *cpu, {{.batch = 1, .seq = 130, .heads = 2, .width = 17, .key_heads = 1, .window = window}, false});
}

TEST(AttentionRoutes, BothEqualReferenceAtManyWidths) {
  const auto cpu = make_cpu();
  for (const std::int64_t width : {1, 3, 16, 31, 32, 33, 48, 80, 96, 127, 128})
    expect_both_equal_reference(*cpu, {{.batch = 1, .seq = 70, .heads = 2, .width = width}, false});
}

template <class T>
bool same(const Operands<T>& a, const Operands<T>& b) {
  bool all = a.lse.data == b.lse.data;
  for (std::size_t i = 0; i < a.results().size(); ++i) all = all && same_bits(*a.results()[i], *b.results()[i]);
  return all;
}

template <class T>
Operands<T> results_of(Backend& cpu, const Case& c, MatmulRoute route) {
  cpu.set_attention_routes({.otherwise = route});
  Operands<T> x(c.o, c.biased);
  x.both(cpu);
  return x;
}

/// So that neither is tested in the place of the other.
TEST(AttentionRoutes, Differ) {
  const auto cpu = make_cpu();
  if (cpu->name() != "cpu") GTEST_SKIP() << "only the cpu has two routes";
  const Case c{{.batch = 1, .seq = 70, .heads = 2, .width = 64}, false};
  EXPECT_FALSE(same(results_of<BFloat16>(*cpu, c, routes[0]), results_of<BFloat16>(*cpu, c, routes[1])));
}

TEST(AttentionRoutes, ChangeNoBitOfF16) {
  const auto cpu = make_cpu();
  for (const Case& c : cases({70}, {17}))
    EXPECT_TRUE(same(results_of<Float16>(*cpu, c, routes[0]), results_of<Float16>(*cpu, c, routes[1])));
}

TEST(AttentionRoutes, AreFoundByShape) {
  const Attention shape{1, 70, 2, 64}, other{1, 70, 2, 32};
  const AttentionRoutes some{.otherwise = MatmulRoute::widened, .of_shape = {{shape, MatmulRoute::native}}};
  EXPECT_EQ(some.of(shape), MatmulRoute::native);
  EXPECT_EQ(some.of(other), MatmulRoute::widened);
}

TEST(AttentionRoutes, TheChosenRouteIsSet) {
  const auto cpu = make_cpu();
  for (const bool biased : {false, true}) {
    const Case c{{.batch = 2, .seq = 70, .heads = 4, .width = 17, .key_heads = 2, .causal = !biased}, biased};
    const MatmulRoute route = choose_attention_route(*cpu, c.o, biased);
    Operands<BFloat16> chosen(c.o, biased);
    chosen.both(*cpu);
    EXPECT_TRUE(same(chosen, results_of<BFloat16>(*cpu, c, route)));
  }
}

/// What an earlier call left in memory: large, and nothing but NaN.
void leave_nan_behind(Backend& cpu) {
  Operands<BFloat16> x({.batch = 1, .seq = 256, .heads = 1, .width = 128}, false);
  for (Bf16s* a : {&x.q, &x.k, &x.v, &x.dy}) std::ranges::fill(a->data, BFloat16(NAN));
  x.both(cpu);
}

TEST(AttentionRoutes, PaddingIsNotWhatEarlierCallsLeft) {
  const auto cpu = make_cpu();
  for (const MatmulRoute route : routes) {
    for (const Case& c : cases({1, 7, 65}, {1, 17})) {
      SCOPED_TRACE(name_of(route) + (' ' + text_of(c.o, c.biased)));
      const auto before = results_of<BFloat16>(*cpu, c, route);
      leave_nan_behind(*cpu);
      EXPECT_TRUE(same(before, results_of<BFloat16>(*cpu, c, route)));
    }
  }
}

/// The second of two heads lies between rows of the first, and behind its padding.
TEST(AttentionRoutes, NaNOfOneHeadStaysThere) {
  const auto cpu = make_cpu();
  for (const MatmulRoute route : routes) {
    cpu->set_attention_routes({.otherwise = route});
    for (const std::int64_t width : {1, 17, 32}) {
      Operands<BFloat16> sound({.batch = 1, .seq = 67, .heads = 2, .width = width}, false), spoilt = sound;
      for (Bf16s* a : {&spoilt.q, &spoilt.k, &spoilt.v, &spoilt.dy})
        for (std::int64_t i = 0; i < a->size(); ++i)
          if (i / width % 2 == 1) (*a)[i] = BFloat16(NAN);
      sound.both(*cpu);
      spoilt.both(*cpu);
      const auto of_first = [width](const Bf16s& x) {
        Bf16s part = x;
        for (std::int64_t i = 0; i < x.size(); ++i) part[i] = i / width % 2 == 0 ? x[i] : BFloat16{};
        return part;
      };
      for (std::size_t r = 0; r < 4; ++r)
        EXPECT_TRUE(same_bits(of_first(*sound.results()[r]), of_first(*spoilt.results()[r]))) << name_of(route) << r;
    }
  }
}

TEST(AttentionRoutes, TokensDoNotSeeTheFuture) {
  const auto cpu = make_cpu();
  for (const MatmulRoute route : routes) {
    cpu->set_attention_routes({.otherwise = route});
    Operands<BFloat16> x({.batch = 1, .seq = 130, .heads = 2, .width = 16}, false), changed = x;
    constexpr std::int64_t from = 71 * 32;
    for (Bf16s* a : {&changed.q, &changed.k, &changed.v})
      for (std::int64_t i = from; i < a->size(); ++i) (*a)[i] = BFloat16(1e3F);
    x.forward(*cpu);
    changed.forward(*cpu);
    for (std::int64_t i = 0; i < from; ++i) ASSERT_EQ(x.y[i].bits, changed.y[i].bits) << name_of(route) << ' ' << i;
  }
}

}  // namespace
}  // namespace foreshard::kernels
