#pragma once
#include <string>
#include <vector>

namespace foreshard::model {

/// Where a model's sizes came from, for reports.
struct Source {
  std::string family;              ///< as its users call it: "gpt", "llama", "mistral", …
  std::string from;                ///< "preset gpt2", or the path of a file
  std::vector<std::string> notes;  ///< what was assumed, replaced or not used, a sentence each
};

}  // namespace foreshard::model
