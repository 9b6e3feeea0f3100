#include "train/checkpoint_folder.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <string_view>

#include "base/error.hpp"
#include "train/checkpoint_file.hpp"

namespace foreshard::train {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view prefix = "step-", temporary_prefix = ".tmp-";

/// `action`, whose failure the user should read.
template <class Action>
auto named_failure(const char* what, Action action) {
  try {
    return action();
  } catch (const fs::filesystem_error& error) {
    throw InputError(ExitCode::runtime_failure,
                     fmt::format("{} {}: {}", what, error.path1().string(), error.code().message()));
  }
}

std::vector<fs::path> entries_of(const fs::path& folder) {
  std::vector<fs::path> entries;
  if (!fs::is_directory(folder)) return entries;
  for (const auto& entry : fs::directory_iterator(folder)) entries.push_back(entry.path());
  return entries;
}

bool is_unfinished(const fs::path& path) { return path.filename().string().starts_with(temporary_prefix); }

void remove_unfinished(const fs::path& folder) {
  for (const fs::path& entry : entries_of(folder))
    if (is_unfinished(entry)) fs::remove_all(entry);
}

void remove_checkpoint(const fs::path& checkpoint) {
  const fs::path doomed =
      checkpoint.parent_path() / fmt::format("{}{}", temporary_prefix, checkpoint.filename().string());
  fs::rename(checkpoint, doomed);
  fs::remove_all(doomed);
}

/// `stem`, or the first of `stem`-2, `stem`-3, … that is free.
fs::path free_name(const fs::path& stem) {
  fs::path name = stem;
  for (int attempt = 2; fs::exists(name); ++attempt) name = fmt::format("{}-{}", stem.string(), attempt);
  return name;
}

}  // namespace

std::string checkpoint_name(std::int64_t step) { return fmt::format("{}{:08}", prefix, step); }

std::optional<std::int64_t> step_of(const fs::path& checkpoint) {
  const std::string name = checkpoint.filename().string();
  if (!name.starts_with(prefix)) return std::nullopt;
  std::int64_t step = 0;
  const char* end = name.data() + name.size();
  const auto [rest, error] = std::from_chars(name.data() + prefix.size(), end, step);
  return error == std::errc() && rest == end ? std::optional(step) : std::nullopt;
}

std::vector<fs::path> checkpoints_in(const fs::path& folder) {
  return named_failure("cannot list", [&] {
    std::vector<fs::path> found = entries_of(folder);
    std::erase_if(found, [](const fs::path& path) { return !step_of(path); });
    std::ranges::sort(found, std::ranges::greater(), [](const fs::path& path) { return *step_of(path); });
    return found;
  });
}

std::vector<fs::path> checkpoints_of_runs(const fs::path& runs) {
  std::vector<fs::path> folders = named_failure("cannot list", [&] { return entries_of(runs); });
  std::erase_if(folders, [](const fs::path& path) { return fs::is_symlink(path); });
  std::ranges::sort(folders, std::ranges::greater());
  std::vector<fs::path> found;
  for (const fs::path& folder : folders)
    std::ranges::copy(checkpoints_in(folder / "checkpoints"), std::back_inserter(found));
  return found;
}

fs::path begin_checkpoint(const fs::path& folder, std::int64_t step) {
  return named_failure("cannot make", [&] {
    fs::create_directories(folder);
    remove_unfinished(folder);
    const fs::path temporary = folder / fmt::format("{}{}", temporary_prefix, checkpoint_name(step));
    fs::create_directory(temporary);
    return temporary;
  });
}

fs::path complete_checkpoint(const fs::path& temporary) {
  const fs::path complete = temporary.parent_path() / temporary.filename().string().substr(temporary_prefix.size());
  sync_folder(temporary);
  named_failure("cannot rename", [&] { fs::rename(temporary, complete); });
  sync_folder(complete.parent_path());
  return complete;
}

void remove_old_checkpoints(const fs::path& folder, std::int64_t keep) {
  const std::vector<fs::path> found = checkpoints_in(folder);
  if (keep == 0) return;
  named_failure("cannot remove", [&] {
    for (std::size_t i = static_cast<std::size_t>(keep); i < found.size(); ++i) remove_checkpoint(found[i]);
  });
}

fs::path set_aside(const fs::path& checkpoint) {
  return named_failure("cannot rename", [&] {
    const fs::path aside = free_name(checkpoint.parent_path() / ("damaged-" + checkpoint.filename().string()));
    fs::rename(checkpoint, aside);
    return aside;
  });
}

}  // namespace foreshard::train
