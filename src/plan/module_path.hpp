#pragma once
#include <string_view>

namespace foreshard::plan {

/// The module around that of `path`; empty for an outermost one.
constexpr std::string_view parent_of(std::string_view path) {
  const std::size_t dot = path.rfind('.');
  return dot == std::string_view::npos ? std::string_view() : path.substr(0, dot);
}

/// What a module is called in its parent; "block" for a numbered one.
constexpr std::string_view class_of(std::string_view path) {
  const std::string_view word = path.substr(path.rfind('.') + 1);
  return word.find_first_not_of("0123456789") == std::string_view::npos ? "block" : word;
}

}  // namespace foreshard::plan
