#pragma once
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "model/model.hpp"
#include "train/safetensors.hpp"
#include "train/training_rank.hpp"

namespace foreshard::train {

/// Values for all parameters of a model, in safetensors files as Hugging Face writes them: names with or without
/// "model." or "transformer." in front, GPT-2's matrices [in features, out features]. They are rounded to the type in
/// which parameters are kept.
class ModelWeights {
 public:
  /// `path` is a file, an index, or a folder with either. Reads headers only. Throws one InputError(bad_input) with
  /// every parameter that is missing, of another shape or of a type that is no floating-point number.
  ModelWeights(const std::filesystem::path& path, const model::Config& model, const model::Graph& graph);

  /// Fills what `rank` owns of one unit, reading no more than that but for transposed matrices, which are read whole.
  /// `shard` holds shard_elements of the plan's type; padding becomes 0.
  void fill_shard(const plan::Plan& plan, std::uint32_t unit, int rank, void* shard) const;

  /// Names of tensors that no parameter takes, but for masks and tables that the model computes.
  const std::vector<std::string>& unused() const { return unused_; }
  std::size_t size() const { return sources_.size(); }

 private:
  struct Source {
    StoredTensor tensor;
    bool transposed = false;
    std::int64_t rows = 0, cols = 0;  ///< of the parameter, where it is transposed
  };

  std::vector<Source> sources_;  // by parameter
  std::vector<std::string> unused_;
};

/// Collective: fills all shards of all ranks, each from the files as it sees them; nothing where `path` is empty. Rank
/// 0 says what it read, and warns of tensors that no parameter takes.
void load_weights(const std::filesystem::path& path, const model::Config& model, comm::Communicator& communicator,
                  TrainingRank& rank);

}  // namespace foreshard::train
