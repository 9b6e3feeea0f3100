#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "model/graph.hpp"
#include "plan/partial_steps.hpp"

namespace foreshard::plan {

/// How long a unit's gathered parameters stay: freed after each visit (full shard), after backward (grad-op), or with
/// the step (ZeRO-1; the root always).
enum class Keep : std::uint8_t { visit, micro_batch, step };

/// Which parameters are gathered, freed and reduced together. Globs are of parameter names.
struct Wrap {
  enum class Policy : std::uint8_t {
    block,    ///< a unit for each of the model's blocks
    blocks,   ///< for every `count` of them, in order
    size,     ///< for modules in order of execution, as soon as they have `count` parameters; the rest to the root
    classes,  ///< for each module of a class of `names`: the last word of its path, "block" where that is a number
    list,     ///< for each module of `names`
    none      ///< all in the root
  };
  /// What some units do otherwise: those whose name, or a parameter of which, the glob matches. The last one decides.
  struct Override {
    std::string glob;
    Keep keep = Keep::visit;
    bool replicated = false;  ///< not sharded, whatever the mesh
  };

  Policy policy = Policy::block;
  std::int64_t count = 1;
  std::vector<std::string> names;
  std::vector<std::string> frozen;   ///< globs: not trained
  std::vector<std::string> ignored;  ///< globs: not sharded but held by every rank, in a unit of their own, "ignored"
  std::vector<Override> overrides;
};

/// Assigns operators and parameters of a forward graph to units anew. An operator belongs to the nearest module around
/// it that has a unit, one without parameters goes with the operator before it, and what is left goes to the root. A
/// parameter that operators of several units read belongs to the root, which is always gathered: one storage, one
/// gradient. Units are numbered in order of execution; one without parameters is none.
model::Graph wrap(const model::Graph& forward, const Wrap& how);

/// By unit of a wrapped graph, how long it is kept; `otherwise` where no override says.
std::vector<Keep> keeps(const model::Graph& wrapped, const Wrap& how, Keep otherwise);

/// What in `how`, or in what some steps leave out, does not fit the model, each a line for the user that names the key;
/// empty if it can be wrapped.
std::vector<std::string> problems(const model::Graph& forward, const Wrap& how, const PartialSteps& steps = {});

}  // namespace foreshard::plan
