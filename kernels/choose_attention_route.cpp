#include <algorithm>
#include <vector>

#include "kernels/attention_route.hpp"
#include "kernels/faster_route.hpp"
#include "kernels/operand.hpp"

namespace foreshard::kernels {
namespace {

Attention part_of(Attention o) {
  o.heads = o.group();
  o.key_heads = 1;
  o.batch = 1;
  o.seq = std::min<std::int64_t>(o.seq, 1024);
  return o;
}

class Trial {
 public:
  Trial(Backend& backend, const Attention& o, bool biased)
      : backend_(backend),
        o_(o),
        queries_(filled(o.seq * o.heads * o.width)),
        keys_(filled(o.seq * o.width)),
        bias_(filled(biased ? o.heads * o.distances() : 0)),
        y_(queries_),
        dqueries_(queries_),
        dkeys_(keys_),
        dvalues_(keys_),
        dbias_(bias_),
        log_sum_exp_(static_cast<std::size_t>(o.seq * o.heads)) {}

  void run(MatmulRoute route) {
    backend_.set_attention_routes({.otherwise = route});
    const Mut log_sum_exp{log_sum_exp_.data(), DType::f32};
    backend_.attention(o_, in(queries_), in(keys_), in(keys_), in(bias_), out(y_), log_sum_exp);
    backend_.attention_backward(o_, in(y_), in(queries_), in(keys_), in(keys_), in(bias_), in(y_),
                                {log_sum_exp.data, DType::f32}, out(dqueries_), out(dkeys_), out(dvalues_),
                                out(dbias_));
  }

 private:
  using Numbers = std::vector<BFloat16>;
  static Numbers filled(std::int64_t count) { return Numbers(static_cast<std::size_t>(count), BFloat16(0.125F)); }
  static Const in(const Numbers& x) { return {x.empty() ? nullptr : x.data(), DType::bf16}; }
  static Mut out(Numbers& x) { return {x.empty() ? nullptr : x.data(), DType::bf16}; }

  Backend& backend_;
  Attention o_;
  Numbers queries_, keys_, bias_, y_, dqueries_, dkeys_, dvalues_, dbias_;
  std::vector<float> log_sum_exp_;
};

}  // namespace

MatmulRoute choose_attention_route(Backend& backend, const Attention& shape, bool biased) {
  Trial trial(backend, part_of(shape), biased);
  const MatmulRoute route = faster_route([&trial](MatmulRoute tried) { trial.run(tried); });
  backend.set_attention_routes({.otherwise = route});
  return route;
}

}  // namespace foreshard::kernels
