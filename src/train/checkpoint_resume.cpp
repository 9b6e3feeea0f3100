#include "train/checkpoint_resume.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <sstream>

#include "base/error.hpp"
#include "base/input_file.hpp"
#include "base/log.hpp"
#include "train/agreement.hpp"
#include "train/checkpoint_folder.hpp"
#include "train/checkpoint_state.hpp"

namespace foreshard::train {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

std::string contents_of(const fs::path& path) {
  if (const std::string why = why_no_file(path); !why.empty())
    throw InputError(ExitCode::bad_input, fmt::format("{} is not whole: {}", path.string(), why));
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  if (!file) throw InputError(ExitCode::bad_input, fmt::format("{} is not whole: it cannot be read", path.string()));
  return text.str();
}

void expect_named_after(const Manifest& manifest, const fs::path& checkpoint) {
  const auto named = step_of(checkpoint);
  if (!named || *named == manifest.step) return;
  throw InputError(ExitCode::bad_input,
                   fmt::format("{} is not what it is called: its manifest is of step {}; call it {}",
                               checkpoint.string(), manifest.step, checkpoint_name(manifest.step)));
}

/// The text of a manifest that can be parsed.
std::string manifest_text(const fs::path& checkpoint) {
  const fs::path path = checkpoint / manifest_name;
  std::string text = contents_of(path);
  expect_named_after(parse_manifest(text, path), checkpoint);
  return text;
}

const FileEntry& file_of_rank(const Manifest& manifest, const fs::path& checkpoint, int rank) {
  const auto found = std::ranges::find(manifest.files, state_file_name(rank), &FileEntry::name);
  if (found == manifest.files.end())
    throw InputError(ExitCode::bad_input, fmt::format("{} is not whole: its manifest does not list {}",
                                                      checkpoint.string(), state_file_name(rank)));
  return *found;
}

/// What the user chose; only where that is equal, what follows from it.
std::vector<std::string> layout_differences(const Json& saved, const Json& here) {
  const auto chosen = [](Json layout) {
    layout.erase("units");
    layout.erase("state_bytes");
    return layout;
  };
  const auto differing = differences(chosen(saved), chosen(here));
  return differing.empty() ? differences(saved, here) : differing;
}

void expect_same_layout(const Manifest& manifest, const fs::path& checkpoint, const Json& layout) {
  const auto differing = layout_differences(manifest.layout, layout);
  if (differing.empty()) return;
  throw InputError(ExitCode::usage,
                   fmt::format("{} is of another run:\n  {}\nresume with what it was written with, or start anew with "
                               "--checkpoint.resume=off",
                               checkpoint.string(), fmt::join(differing, "\n  ")));
}

/// One search for a checkpoint on one rank.
class Search {
 public:
  Search(comm::Communicator& communicator, TrainingRank& rank, const std::vector<fs::path>& candidates,
         const Json& layout)
      : communicator_(communicator), rank_(rank), candidates_(candidates), layout_(layout) {}

  std::optional<Resumed> run() {
    while (offer_next()) {
      const Manifest manifest = parse_manifest(text_, checkpoint_ / manifest_name);
      together(communicator_, [&] { expect_same_layout(manifest, checkpoint_, layout_); });
      if (loaded_everywhere(manifest)) return Resumed{checkpoint_, manifest, refused_};
      refused_.push_back(checkpoint_);
    }
    together(communicator_, [&] { expect_none_refused(); });
    return std::nullopt;
  }

 private:
  /// The next candidate of rank 0 with a whole manifest, on all ranks.
  bool offer_next() {
    if (communicator_.rank() == 0) find_next();
    checkpoint_ = text_of_rank_0(communicator_, checkpoint_.string());
    text_ = text_of_rank_0(communicator_, text_);
    return !checkpoint_.empty();
  }

  void find_next() {
    for (; next_ < candidates_.size(); refused_.push_back(candidates_[next_++])) {
      if (!warned([&] { text_ = manifest_text(candidates_[next_]); })) continue;
      checkpoint_ = candidates_[next_++];
      return;
    }
    checkpoint_.clear();
  }

  bool loaded_everywhere(const Manifest& manifest) {
    const bool loaded =
        warned([&] { read_state(checkpoint_, file_of_rank(manifest, checkpoint_, communicator_.rank()), rank_); });
    return std::ranges::count(communicator_.all_gather_u64(loaded), 0U) == 0;
  }

  /// True unless `action` finds damage, which is told.
  template <class Action>
  bool warned(Action action) {
    try {
      action();
      return true;
    } catch (const InputError& error) {
      log_warn("checkpoint refused: {}", error.what());
      return false;
    }
  }

  void expect_none_refused() const {
    if (refused_.empty()) return;
    throw InputError(ExitCode::bad_input,
                     fmt::format("no whole checkpoint: {} refused, as warned above, {} the newest; restore one, or "
                                 "start anew with --checkpoint.resume=off",
                                 refused_.size() == 1 ? "1 was" : fmt::format("{} were", refused_.size()),
                                 refused_.front().string()));
  }

  comm::Communicator& communicator_;
  TrainingRank& rank_;
  const std::vector<fs::path>& candidates_;
  const Json& layout_;
  std::size_t next_ = 0;
  fs::path checkpoint_;
  std::string text_;
  std::vector<fs::path> refused_;
};

}  // namespace

std::optional<Resumed> resume_from(comm::Communicator& communicator, TrainingRank& rank,
                                   const std::vector<fs::path>& candidates, const Json& layout) {
  return Search(communicator, rank, candidates, layout).run();
}

}  // namespace foreshard::train
