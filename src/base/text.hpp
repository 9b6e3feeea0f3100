#pragma once
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace foreshard {

/// The name most like `word` by edit distance (insert, delete, replace, swap of neighbours, ignoring case), for "did
/// you mean". Empty when none is near: more than a third of the longer word, and more than one edit, would have to
/// change.
std::string nearest(std::string_view word, std::span<const std::string_view> names);
std::string nearest(std::string_view word, std::span<const std::string> names);

/// " Did you mean `name`?", or nothing when no name is near.
std::string did_you_mean(std::string_view word, std::span<const std::string_view> names);
std::string did_you_mean(std::string_view word, std::span<const std::string> names);

/// One problem as it is; several as a numbered list, one a line, under `heading`.
std::string numbered(std::string_view heading, std::span<const std::string> problems);

std::string_view trimmed(std::string_view text);

/// `text`, or its beginning and "…" where it is longer than `most` bytes; characters of UTF-8 stay whole.
std::string shortened(std::string_view text, std::size_t most);

/// Length of the longest beginning of `text` that is UTF-8: its size, if all of it is.
std::size_t utf8_prefix(std::string_view text);

/// The parts between separators, at least one; views of `text`.
std::vector<std::string_view> split(std::string_view text, char separator);

}  // namespace foreshard
