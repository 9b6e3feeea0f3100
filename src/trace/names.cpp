#include "trace/names.hpp"

namespace foreshard::trace {
namespace {

using Names = std::vector<std::string_view>;

template <class Enum>
Names first(int count) {
  Names names;
  for (int i = 0; i < count; ++i) names.push_back(name_of(static_cast<Enum>(i)));
  return names;
}

}  // namespace

template <>
const Names& names_of<plan::OpKind>() {
  static const Names names = first<plan::OpKind>(static_cast<int>(plan::OpKind::count_));
  return names;
}

template <>
const Names& names_of<plan::Lane>() {
  static const Names names = first<plan::Lane>(plan::lane_count);
  return names;
}

template <>
const Names& names_of<plan::MemoryClass>() {
  static const Names names = first<plan::MemoryClass>(static_cast<int>(plan::MemoryClass::count_));
  return names;
}

template <>
const Names& names_of<plan::Space>() {
  static const Names names = first<plan::Space>(plan::space_count);
  return names;
}

template <>
const Names& names_of<plan::Phase>() {
  static const Names names{"forward", "backward", "update"};
  return names;
}

template <>
const Names& names_of<plan::GroupKind>() {
  static const Names names{"none", "shard", "replica", "world", "inner"};
  return names;
}

template <>
const Names& names_of<plan::Wait::On>() {
  static const Names names{"op", "freed", "reduced", "updated"};
  return names;
}

template <>
const Names& names_of<plan::Segment::Name>() {
  static const Names names = first<plan::Segment::Name>(6);
  return names;
}

template <>
const Names& names_of<DType>() {
  static const Names names = first<DType>(6);
  return names;
}

template <>
const Names& names_of<Kind>() {
  static const Names names{"measured", "predicted"};
  return names;
}

std::string_view unit_name(const plan::Plan& plan, plan::UnitId unit) {
  return unit.value < plan.unit_names.size() ? std::string_view(plan.unit_names[unit.value]) : "-";
}

}  // namespace foreshard::trace
