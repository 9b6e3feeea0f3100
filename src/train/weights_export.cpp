#include "train/weights_export.hpp"

#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>
#include <optional>
#include <vector>

#include "base/error.hpp"
#include "base/log.hpp"
#include "train/checkpoint_file.hpp"
#include "train/safetensors.hpp"
#include "train/weight_names.hpp"

namespace foreshard::train {
namespace {

namespace fs = std::filesystem;
using Bytes = std::vector<std::byte>;

constexpr std::size_t alignment = 64;  // of the first tensor in the file

std::string header_of(const model::Config& model, const model::Graph& graph, DType dtype) {
  nlohmann::ordered_json json{{"__metadata__", {{"format", "pt"}}}};
  std::int64_t begin = 0;
  for (const model::Parameter& parameter : graph.parameters) {
    const std::int64_t end = begin + parameter.elements() * size_bytes(dtype);
    json[stored_name(model, parameter)] = {
        {"dtype", stored_type(dtype)}, {"shape", stored_shape(model, parameter)}, {"data_offsets", {begin, end}}};
    begin = end;
  }
  std::string text = json.dump();
  constexpr std::size_t length_bytes = sizeof(std::uint64_t);
  text.resize((length_bytes + text.size() + alignment - 1) / alignment * alignment - length_bytes, ' ');
  const std::uint64_t length = text.size();
  std::string header(length_bytes, '\0');
  std::memcpy(header.data(), &length, length_bytes);
  return header + text;
}

/// [cols, rows] of a matrix [rows, cols].
Bytes transposed(const Bytes& matrix, std::int64_t rows, std::int64_t cols) {
  const std::size_t width = matrix.size() / static_cast<std::size_t>(rows * cols);
  Bytes result(matrix.size());
  for (std::int64_t row = 0; row < rows; ++row)
    for (std::int64_t col = 0; col < cols; ++col)
      std::memcpy(result.data() + static_cast<std::size_t>(col * rows + row) * width,
                  matrix.data() + static_cast<std::size_t>(row * cols + col) * width, width);
  return result;
}

/// Collects parameters on rank 0, from the ranks that hold the first copy of them.
class Collector {
 public:
  Collector(comm::Communicator& communicator, TrainingRank& rank) : communicator_(communicator), rank_(rank) {}

  /// Collective. The whole parameter on rank 0, elsewhere nothing.
  Bytes collect(std::uint32_t id) {
    const plan::FlatParameter& flat = rank_.plan().units[rank_.graph().parameters[id].unit.value];
    const auto gathered = communicator_.gather(own_part(flat, id));
    Bytes whole;
    if (gathered.empty()) return whole;
    whole.resize(bytes(rank_.graph().parameters[id].elements()));
    for (int member = 0; member < flat.shard_degree; ++member) {
      const std::byte* from = gathered[static_cast<std::size_t>(member)].data();
      for (const plan::ShardPart& part : parts(flat, id, member)) {
        std::copy_n(from, bytes(part.count), whole.data() + bytes(part.first));
        from += bytes(part.count);
      }
    }
    return whole;
  }

 private:
  std::size_t bytes(std::int64_t elements) const {
    return static_cast<std::size_t>(elements * size_bytes(rank_.plan().master));
  }

  static std::vector<plan::ShardPart> parts(const plan::FlatParameter& flat, std::uint32_t id, int member) {
    std::vector<plan::ShardPart> all = plan::parts_of_shard(flat, member);
    std::erase_if(all, [id](const plan::ShardPart& part) { return part.piece->parameter.value != id; });
    return all;
  }

  Bytes own_part(const plan::FlatParameter& flat, std::uint32_t id) {
    Bytes own;
    if (communicator_.rank() >= flat.shard_degree) return own;
    rank_.read(flat.parameter_shard, [&](std::span<const std::byte> shard) {
      for (const plan::ShardPart& part : parts(flat, id, communicator_.rank()))
        std::ranges::copy(shard.subspan(bytes(part.at), bytes(part.count)), std::back_inserter(own));
    });
    return own;
  }

  comm::Communicator& communicator_;
  TrainingRank& rank_;
};

}  // namespace

void export_weights(const fs::path& path, const model::Config& model, comm::Communicator& communicator,
                    TrainingRank& rank) {
  if (path.empty()) return;
  const model::Graph& graph = rank.graph();
  const fs::path part = path.string() + ".part";
  std::optional<DurableFile> file;
  if (communicator.rank() == 0) {
    fs::remove(part);
    file.emplace(part);
    const std::string header = header_of(model, graph, rank.plan().master);
    file->write(std::as_bytes(std::span(header)));
  }
  Collector collector(communicator, rank);
  for (std::uint32_t id = 0; id < graph.parameters.size(); ++id) {
    const model::Parameter& parameter = graph.parameters[id];
    Bytes whole = collector.collect(id);
    if (!file) continue;
    if (is_stored_transposed(model, parameter)) whole = transposed(whole, parameter.shape[0], parameter.shape[1]);
    file->write(whole);
  }
  if (!file) return;
  file->close();
  fs::rename(part, path);
  sync_folder(fs::absolute(path).parent_path());
  log_info("weights      {} tensors written to {}", graph.parameters.size(), path.string());
}

}  // namespace foreshard::train
