#include "sim/validation/published_row.hpp"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <variant>

#include "base/error.hpp"
#include "base/text.hpp"

namespace foreshard::sim::validation {
namespace {

using Text = std::string PublishedRow::*;
using Number = std::optional<double> PublishedRow::*;
using Count = std::optional<std::int64_t> PublishedRow::*;

struct Column {
  const char* name;
  std::variant<Text, Number, Count> member;
};

using R = PublishedRow;
const Column columns[] = {{"source", &R::source},
                          {"ref", &R::ref},
                          {"model", &R::model},
                          {"params_b", &R::params_b},
                          {"layers", &R::layers},
                          {"d_model", &R::d_model},
                          {"heads", &R::heads},
                          {"kv_heads", &R::kv_heads},
                          {"d_ff", &R::d_ff},
                          {"vocab", &R::vocab},
                          {"seq_len", &R::seq_len},
                          {"gpu", &R::gpu},
                          {"gpu_mem_gb", &R::gpu_mem_gb},
                          {"n_gpus", &R::n_gpus},
                          {"gpus_per_node", &R::gpus_per_node},
                          {"interconnect", &R::interconnect},
                          {"strategy", &R::strategy},
                          {"reshard_after_forward", &R::reshard_after_forward},
                          {"tp", &R::tp},
                          {"pp", &R::pp},
                          {"cp", &R::cp},
                          {"precision", &R::precision},
                          {"micro_batch_per_gpu", &R::micro_batch_per_gpu},
                          {"grad_accum", &R::grad_accum},
                          {"global_batch_tokens", &R::global_batch_tokens},
                          {"activation_ckpt", &R::activation_ckpt},
                          {"offload", &R::offload},
                          {"compile_or_flash", &R::compile_or_flash},
                          {"tokens_per_s_per_gpu", &R::tokens_per_s_per_gpu},
                          {"step_time_s", &R::step_time_s},
                          {"tflops_per_gpu", &R::tflops_per_gpu},
                          {"mfu_pct", &R::mfu_pct},
                          {"hfu_pct", &R::hfu_pct},
                          {"peak_mem_gib", &R::peak_mem_gib},
                          {"peak_mem_kind", &R::peak_mem_kind},
                          {"oom", &R::oom},
                          {"notes", &R::notes},
                          {"plain_dp", &R::plain_dp},
                          {"exclude", &R::exclude}};

/// Reads one field; `where` says which, for the message.
struct Reader {
  const std::string& text;
  const std::string& where;
  PublishedRow& row;

  void operator()(Text member) const { row.*member = text; }
  void operator()(Number member) const {
    if (const double value = number(); value > 0) row.*member = value;
  }
  void operator()(Count member) const {
    const double value = number(), most = member == &R::global_batch_tokens ? 1e15 : 1 << 20;
    if (value != std::floor(value) || value > most) refuse(fmt::format("a whole number of at most {:.0f}", most));
    if (value > 0) row.*member = static_cast<std::int64_t>(value);
  }

  /// 0 of an empty field: no size and no figure of a run is 0.
  double number() const {
    double value = 0;
    const char* end = text.data() + text.size();
    if (text.empty()) return 0;
    const auto [parsed, error] = std::from_chars(text.data(), end, value);
    const bool plausible = value == 0 || (value >= 1e-9 && value <= 1e18);
    if (error != std::errc() || parsed != end || !plausible) refuse("a number from 1e-9 to 1e18, or nothing");
    return value;
  }
  [[noreturn]] void refuse(const std::string& expected) const {
    throw InputError(ExitCode::bad_input, fmt::format("{} is '{}'; expected {}", where, shortened(text, 60), expected));
  }
};

}  // namespace

std::vector<PublishedRow> published_rows(const CsvTable& table) {
  std::vector<PublishedRow> rows(table.rows.size());
  for (const Column& column : columns) {
    const std::size_t index = table.column(column.name);
    for (std::size_t i = 0; i < rows.size(); ++i) {
      const std::string where = fmt::format("{}: row {}, {}", table.path, i + 1, column.name);
      const std::string text(trimmed(table.rows[i][index]));
      std::visit(Reader{text, where, rows[i]}, column.member);
    }
  }
  return rows;
}

}  // namespace foreshard::sim::validation
