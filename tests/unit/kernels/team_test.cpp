// Every cpu kernel gives the same bits at any team size, and for any cut of a flat array.
#include <gtest/gtest.h>
#include <omp.h>

#include <bit>
#include <cstring>
#include <functional>
#include <thread>

#include "arrays.hpp"

namespace foreshard::kernels {
namespace {

using Floats = Array<float>;

/// Runs `work` with teams of 1, 2 and 3 threads; it returns all that it computed.
void expect_same_bits(const std::function<std::vector<float>(Backend&)>& work) {
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "the OpenMP runtime is not built for the thread sanitizer";
#endif
  const auto cpu = make_cpu();
  const int before = omp_get_max_threads();
  omp_set_num_threads(1);
  const std::vector<float> alone = work(*cpu);
  for (const int team : {2, 3}) {
    omp_set_num_threads(team);
    const std::vector<float> together = work(*cpu);
    EXPECT_TRUE(std::ranges::equal(alone, together,
                                   [](float a, float b) { return std::bit_cast<int>(a) == std::bit_cast<int>(b); }))
        << "team of " << team;
  }
  omp_set_num_threads(before);
}

std::vector<float> joined(std::initializer_list<const Floats*> arrays) {
  std::vector<float> all;
  for (const Floats* a : arrays) all.insert(all.end(), a->data.begin(), a->data.end());
  return all;
}

TEST(Team, Matmul) {
  struct Shape {
    std::int64_t m, n, k;
  };
  for (const auto [m, n, k] : {Shape{5, 7, 3},
                               {256, 192, 768},
                               {192, 768, 512},
                               {512, 2048, 192},
                               {64, 48, 4096},
                               {2048, 192, 512},
                               {31, 33, 3000}}) {
    for (int form = 0; form < 4; ++form) {
      SCOPED_TRACE(testing::Message() << m << " x " << n << " x " << k << " form " << form);
      const bool accumulate = m % 2 == 0;
      const Matmul o{m, n, k, (form & 1) != 0, (form & 2) != 0, accumulate};
      const Floats a = Floats::random(m * k, 1), b = Floats::random(k * n, 2),
                   bias = Floats::random(accumulate ? 0 : n, 3);
      expect_same_bits([&](Backend& cpu) {
        Floats c = Floats::random(m * n, 4);
        cpu.matmul(o, a, b, bias, c);
        return c.data;
      });
    }
  }
}

TEST(Team, MatmulOfHalves) {
  for (const Matmul& o : {Matmul{5, 7, 3},
                          {256, 192, 768, false, true, true},
                          {1100, 96, 300, true, false, true},
                          {600, 1030, 1100, false, true},
                          {31, 33, 3000}}) {
    for (const MatmulRoute route : {MatmulRoute::native, MatmulRoute::widened}) {
      SCOPED_TRACE(testing::Message() << o.m << " x " << o.n << " x " << o.k << " route " << static_cast<int>(route));
      const auto a = Array<BFloat16>::random(o.m * o.k, 1), b = Array<BFloat16>::random(o.k * o.n, 2);
      expect_same_bits([&](Backend& cpu) {
        cpu.set_matmul_routes({.otherwise = route});
        auto c = Array<BFloat16>::random(o.m * o.n, 4);
        Floats wide = Floats::random(o.m * o.n, 4);
        cpu.matmul(o, a, b, {}, c);
        cpu.matmul(o, a, b, {}, wide);
        const Floats widened(c);
        return joined({&widened, &wide});
      });
    }
  }
}

TEST(Team, KernelsOfHalves) {
  const Rows o{300, 769};
  const Embedding e{300, 769, 50, 100};
  const std::int64_t n = o.rows * o.cols;
  const Tokens tokens = random_tokens(300, 50, 1);
  const auto x = Array<BFloat16>::random(n, 1), dy = Array<BFloat16>::random(n, 2),
             gain = Array<BFloat16>::random(o.cols, 3);
  expect_same_bits([&](Backend& cpu) {
    Array<BFloat16> y(n), dx(n), dgain(o.cols), dbias(o.cols), dbias2(o.cols), table(50 * 769), positions(100 * 769);
    Floats mean(o.rows), rstd(o.rows);
    cpu.layer_norm(o, 1e-5F, x, {}, gain, gain, {}, y, mean, rstd);
    cpu.layer_norm_backward(o, false, dy, x, gain, mean, rstd, {}, dx, dgain, dbias);
    cpu.bias_grad(o, false, dy, dbias2);
    cpu.embedding_backward(e, false, dy, tokens, table, positions);
    std::vector<float> all;
    for (const auto* array : {&y, &dx, &dgain, &dbias, &dbias2, &table, &positions}) {
      for (const BFloat16& value : array->data) all.push_back(static_cast<float>(value));
    }
    return all;
  });
}

TEST(Team, RowKernels) {
  for (const Rows& o : {Rows{300, 192}, Rows{67, 769}, Rows{512, 1000}}) {
    const std::int64_t n = o.rows * o.cols;
    const Floats x = Floats::random(n, 1), dy = Floats::random(n, 2), gain = Floats::random(o.cols, 3),
                 bias = Floats::random(o.cols, 4);
    expect_same_bits([&](Backend& cpu) {
      Floats sum(n), y(n), mean(o.rows), rstd(o.rows), dx(n), dgain(o.cols), dbias(o.cols), dbias2(o.cols);
      cpu.layer_norm(o, 1e-5F, x, dy, gain, bias, sum, y, mean, rstd);
      cpu.layer_norm_backward(o, false, dy, sum, gain, mean, rstd, x, dx, dgain, dbias);
      cpu.bias_grad(o, false, dy, dbias2);
      Floats root_y(n), root_rstd(o.rows), root_dx(n), root_dgain(o.cols);
      cpu.rms_norm(o, 1e-5F, x, {}, gain, {}, root_y, root_rstd);
      cpu.rms_norm_backward(o, false, dy, x, gain, root_rstd, x, root_dx, root_dgain);
      return joined({&sum, &y, &mean, &rstd, &dx, &dgain, &dbias, &dbias2, &root_y, &root_rstd, &root_dx, &root_dgain});
    });
  }
}

TEST(Team, ElementKernels) {
  const std::int64_t n = 100003;
  const Floats x = Floats::random(n, 1), dy = Floats::random(n, 2);
  expect_same_bits([&](Backend& cpu) {
    Floats y(n), dx(n), sum(n), dropped(n), p = x, m(n), v(n);
    cpu.gelu(n, x, y);
    cpu.gelu_backward(n, dy, x, dx);
    Floats gated(n), dgate(n), dup(n), turned(99600);
    cpu.swiglu(n, x, dy, gated);
    cpu.swiglu_backward(n, dy, x, gated, dgate, dup);
    cpu.rotary({.rows = 830, .heads = 3, .width = 40, .seq = 415}, x, turned);
    cpu.add(n, x, dy, sum);
    cpu.dropout({n, 0.2F, 1, 2, 5}, x, dropped);
    Update o{n};
    o.learning_rate = 0.1;
    cpu.adamw(o, dy, p, m, v);
    return joined({&y, &dx, &gated, &dgate, &dup, &turned, &sum, &dropped, &p, &m, &v});
  });
}

TEST(Team, Reattention) {
  expect_same_bits([](Backend& cpu) {
    const Reattention o{.batch = 5, .seq = 19, .heads = 3, .width = 7};
    const std::int64_t count = o.batch * o.seq * o.heads * o.width;
    const Floats q = Floats::random(count, 1), k = Floats::random(count, 2), v = Floats::random(count, 3);
    const Floats mixing = Floats::random(9, 4), gain = Floats::random(3, 5), bias = Floats::random(3, 6);
    Floats y(count), lse(o.batch * o.heads * o.seq), dq(count), dk(count), dv(count), dmixing(9), dgain(3), dbias(3);
    cpu.reattention(o, q, k, v, mixing, gain, bias, y, lse);
    cpu.reattention_backward(o, false, v, q, k, v, mixing, gain, bias, lse, dq, dk, dv, dmixing, dgain, dbias);
    return joined({&y, &lse, &dq, &dk, &dv, &dmixing, &dgain, &dbias});
  });
}

TEST(Team, Attention) {
  for (const Attention& o : {Attention{2, 100, 3, 32}, Attention{1, 130, 5, 64}}) {
    const std::int64_t n = o.batch * o.seq * o.heads * o.width;
    const Floats qkv = Floats::random(3 * n, 1), dy = Floats::random(n, 2);
    expect_same_bits([&](Backend& cpu) {
      Floats y(n), lse(o.batch * o.seq * o.heads), dqkv(3 * n);
      cpu.attention(o, qkv, y, lse);
      cpu.attention_backward(o, dy, qkv, y, lse, dqkv);
      return joined({&y, &lse, &dqkv});
    });
  }
}

TEST(Team, GroupedAttention) {
  const Attention o{.batch = 3, .seq = 100, .heads = 4, .width = 32, .key_heads = 2};
  const Floats q = Floats::random(300 * 128, 1), k = Floats::random(300 * 64, 2), v = Floats::random(300 * 64, 3);
  expect_same_bits([&](Backend& cpu) {
    Floats y(q.size()), lse(1200), dq(q.size()), dk(k.size()), dv(v.size());
    cpu.attention(o, q, k, v, y, lse);
    cpu.attention_backward(o, q, q, k, v, y, lse, dq, dk, dv);
    return joined({&y, &lse, &dq, &dk, &dv});
  });
}

TEST(Team, AttentionOfHalvesByEitherRoute) {
  const Attention o{.batch = 3, .seq = 101, .heads = 4, .width = 20, .key_heads = 2};
  using Halves = Array<BFloat16>;
  const Halves q = Halves::random(303 * 80, 1), k = Halves::random(303 * 40, 2), v = Halves::random(303 * 40, 3);
  for (const MatmulRoute route : {MatmulRoute::native, MatmulRoute::widened}) {
    expect_same_bits([&](Backend& cpu) {
      cpu.set_attention_routes({.otherwise = route});
      Halves y(q.size()), dq(q.size()), dk(k.size()), dv(v.size());
      Floats lse(1212);
      cpu.attention(o, q, k, v, y, lse);
      cpu.attention_backward(o, q, q, k, v, y, lse, dq, dk, dv);
      const Floats all[] = {Floats(y), Floats(dq), Floats(dk), Floats(dv)};
      return joined({&all[0], &all[1], &all[2], &all[3], &lse});
    });
  }
}

TEST(Team, TokenKernels) {
  const Embedding e{300, 200, 50, 100};
  const Rows o{300, 2051};
  const Tokens tokens = random_tokens(300, 50, 1);
  const Floats dx = Floats::random(300 * 200, 2), logits = Floats::random(o.rows * o.cols, 3);
  expect_same_bits([&](Backend& cpu) {
    Floats table(50 * 200), positions(100 * 200), lse(300), dlogits(o.rows * o.cols), loss_bits(4);
    Array<double> loss(2);
    cpu.embedding_backward(e, false, dx, tokens, table, positions);
    cpu.cross_entropy(o, logits, tokens, loss, lse);
    cpu.cross_entropy_backward(o, 1, logits, tokens, lse, dlogits);
    std::memcpy(loss_bits.data.data(), loss.data.data(), 16);
    return joined({&table, &positions, &lse, &dlogits, &loss_bits});
  });
}

TEST(Team, RanksMayBeThreadsOfOneProcess) {
  const Attention o{1, 70, 2, 16};
  const Floats x = Floats::random(70 * 32, 1), w = Floats::random(96 * 32, 2);
  const auto cpu = make_cpu();
  const auto rank = [&](std::vector<float>& result) {
    omp_set_num_threads(1);
    Floats qkv(70 * 96), y(70 * 32), lse(140), dqkv(70 * 96), dw(96 * 32);
    for (int step = 0; step < 5; ++step) {
      cpu->matmul({70, 96, 32, false, true}, x, w, {}, qkv);
      cpu->attention(o, qkv, y, lse);
      cpu->attention_backward(o, x, qkv, y, lse, dqkv);
      cpu->matmul({96, 32, 70, true, false, true}, dqkv, x, {}, dw);
    }
    result = joined({&y, &lse, &dqkv, &dw});
  };
  std::vector<float> results[4];
  std::vector<std::thread> ranks;
  for (auto& result : results) ranks.emplace_back(rank, std::ref(result));
  for (auto& thread : ranks) thread.join();
  for (const auto& result : results) EXPECT_EQ(result, results[0]);
}

}  // namespace
}  // namespace foreshard::kernels
