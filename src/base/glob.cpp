#include "base/glob.hpp"

namespace foreshard {

bool matches_glob(std::string_view glob, std::string_view text) {
  std::size_t at = 0, in_text = 0, star = std::string_view::npos, resume = 0;
  while (in_text < text.size()) {
    if (at < glob.size() && glob[at] == '*') {
      star = at++, resume = in_text;
    } else if (at < glob.size() && (glob[at] == '?' || glob[at] == text[in_text])) {
      ++at, ++in_text;
    } else if (star != std::string_view::npos) {
      at = star + 1, in_text = ++resume;
    } else {
      return false;
    }
  }
  while (at < glob.size() && glob[at] == '*') ++at;
  return at == glob.size();
}

}  // namespace foreshard
