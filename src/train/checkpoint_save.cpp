#include "train/checkpoint_save.hpp"

#include <fmt/format.h>

#include "base/error.hpp"
#include "train/agreement.hpp"
#include "train/checkpoint_folder.hpp"

namespace foreshard::train {
namespace {

using Json = nlohmann::json;
namespace fs = std::filesystem;

/// One save on one rank.
class Save {
 public:
  Save(comm::Communicator& communicator, TrainingRank& rank, Manifest manifest, const SaveOptions& options)
      : communicator_(communicator), rank_(rank), manifest_(std::move(manifest)), options_(options) {}

  fs::path run() {
    phase([&] { begin(); });
    temporary_ = text_of_rank_0(communicator_, temporary_.string());
    phase([&] { write_own(); });
    gather_entries();
    phase([&] { complete(); });
    return complete_;
  }

 private:
  bool leads() const { return communicator_.rank() == 0; }

  /// Collective: what fails on one rank ends all, and what was begun is removed.
  void phase(const std::function<void()>& action) {
    try {
      together(communicator_, [&] { explained(action); });
    } catch (...) {
      std::error_code ignored;
      if (!temporary_.empty()) fs::remove_all(temporary_, ignored);
      throw;
    }
  }

  void explained(const std::function<void()>& action) const {
    try {
      action();
    } catch (const InputError& error) {
      throw InputError(error.code(),
                       fmt::format("the checkpoint of step {} could not be saved: {}; earlier checkpoints "
                                   "are as they were: make room there, or name another checkpoint.dir, "
                                   "and go on with --checkpoint.resume=auto",
                                   manifest_.step, error.what()));
    }
  }

  void begin() {
    if (!leads()) return;
    temporary_ = begin_checkpoint(options_.folder, manifest_.step);
    options_.at_point("folder made");
  }

  void write_own() { own_ = write_state(temporary_ / state_file_name(communicator_.rank()), rank_, options_.at_point); }

  void gather_entries() {
    const std::string own = Json{own_.name, own_.size_bytes, own_.sha256}.dump();
    for (const auto& bytes : communicator_.gather(std::as_bytes(std::span(own)))) {
      const Json entry = Json::parse(reinterpret_cast<const char*>(bytes.data()),
                                     reinterpret_cast<const char*>(bytes.data()) + bytes.size());
      manifest_.files.push_back({entry[0], entry[1].get<std::int64_t>(), entry[2]});
    }
  }

  void complete() {
    if (!leads()) return;
    write_manifest();
    complete_ = complete_checkpoint(temporary_);
    options_.at_point("renamed");
    remove_old_checkpoints(options_.folder, options_.keep);
    options_.at_point("old ones removed");
  }

  void write_manifest() {
    const std::string text = text_of(manifest_);
    DurableFile file(temporary_ / manifest_name);
    options_.at_point("manifest made");
    file.write(std::as_bytes(std::span(text)));
    options_.at_point("manifest written");
    file.close();
    options_.at_point("manifest on disk");
  }

  comm::Communicator& communicator_;
  TrainingRank& rank_;
  Manifest manifest_;
  const SaveOptions& options_;
  fs::path temporary_, complete_;
  FileEntry own_;
};

}  // namespace

fs::path save_checkpoint(comm::Communicator& communicator, TrainingRank& rank, Manifest manifest,
                         const SaveOptions& options) {
  return Save(communicator, rank, std::move(manifest), options).run();
}

}  // namespace foreshard::train
