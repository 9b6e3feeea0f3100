#include "sim/runtimes/runtime_names.hpp"

#include <algorithm>
#include <array>

namespace foreshard::sim::torch {
namespace {

struct Named {
  Runtime runtime;
  std::string_view name;
};
constexpr std::array all{Named{Runtime::ddp, "pytorch-ddp"},       Named{Runtime::fsdp1, "pytorch-fsdp1"},
                         Named{Runtime::fsdp2, "pytorch-fsdp2"},   Named{Runtime::zero1, "deepspeed-zero1"},
                         Named{Runtime::zero2, "deepspeed-zero2"}, Named{Runtime::zero3, "deepspeed-zero3"}};

}  // namespace

std::string_view name_of(Runtime runtime) { return std::ranges::find(all, runtime, &Named::runtime)->name; }

std::optional<Runtime> runtime_named(std::string_view name) {
  const auto* const found = std::ranges::find(all, name, &Named::name);
  return found == all.end() ? std::nullopt : std::optional(found->runtime);
}

int zero_stage(Runtime runtime) {
  switch (runtime) {
    case Runtime::zero1:
      return 1;
    case Runtime::zero2:
      return 2;
    case Runtime::zero3:
      return 3;
    case Runtime::ddp:
    case Runtime::fsdp1:
    case Runtime::fsdp2:
      break;
  }
  return 0;
}

}  // namespace foreshard::sim::torch
