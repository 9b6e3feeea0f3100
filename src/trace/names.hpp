#pragma once
#include <string_view>
#include <vector>

#include "plan/plan.hpp"
#include "trace/tables.hpp"

namespace foreshard::trace {

/// Names of an enum's values, by value: what the enum types in the file are made of.
template <class Enum>
const std::vector<std::string_view>& names_of();

template <>
const std::vector<std::string_view>& names_of<plan::OpKind>();
template <>
const std::vector<std::string_view>& names_of<plan::Lane>();
template <>
const std::vector<std::string_view>& names_of<plan::MemoryClass>();
template <>
const std::vector<std::string_view>& names_of<plan::Space>();
template <>
const std::vector<std::string_view>& names_of<plan::Phase>();
template <>
const std::vector<std::string_view>& names_of<plan::GroupKind>();
template <>
const std::vector<std::string_view>& names_of<plan::Wait::On>();
template <>
const std::vector<std::string_view>& names_of<plan::Segment::Name>();
template <>
const std::vector<std::string_view>& names_of<DType>();
template <>
const std::vector<std::string_view>& names_of<Kind>();

/// Name of a value; "?" for one that the enum does not have.
template <class Enum>
std::string_view text_of(Enum value) {
  const auto& names = names_of<Enum>();
  return static_cast<std::size_t>(value) < names.size() ? names[static_cast<std::size_t>(value)] : "?";
}

/// A unit's name, or "-" where there is no unit.
std::string_view unit_name(const plan::Plan& plan, plan::UnitId unit);

}  // namespace foreshard::trace
