#pragma once
#include <cstddef>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "model/model.hpp"

namespace foreshard::sim::validation {

/// Runs that are alike enough for one error bar.
struct RunClass {
  std::string gpu;     ///< by its name in the catalogue
  std::string style;   ///< "eager", "compiled", "hand_written": see style_of
  bool gated = false;  ///< the feed-forward layer
  int gpus = 1;
};

/// How far a prediction is to be trusted.
struct ErrorBar {
  double pct = 0;        ///< nine of ten are within it; 0: nothing is known
  std::size_t rows = 0;  ///< published runs that it is a quantile of; 0: of none
  std::string basis;     ///< in words
};

/// Of a step's time and what follows from it, of PyTorch event by event: a quantile of the residuals of the nearest
/// class of published runs that has five: of the same GPU, style, feed-forward layer and more than 8 GPUs or not;
/// without the last, without the last two, of the same GPU. Of a GPU never measured, an assumption. The numbers and the
/// command that makes them are in profiles/torch_error_bars.json.
ErrorBar torch_error_bar(const RunClass& run);

/// Of any other software, by how far sources are off, in closed form, that a fit did not see; of a GPU never measured,
/// an assumption.
ErrorBar unseen_software_error_bar(const RunClass& run);

/// Of PyTorch's peak memory, whatever the GPU, in closed form: of full training, or of LoRA.
ErrorBar memory_error_bar(bool lora);

/// The commands that made the quantiles, event by event and in closed form.
std::string torch_error_bar_command();
std::string error_bar_command();

/// " ±9.7 % (p90 of 69 published runs: …)"
std::string text_of(const ErrorBar& bar);
nlohmann::ordered_json json_of(const ErrorBar& bar);

bool has_gated_layers(const model::Config& model);

/// Of throughput in closed form, of a GPU and style (see style_of), in percent.
double error_bar_pct(const std::string& gpu, const std::string& style);

}  // namespace foreshard::sim::validation
