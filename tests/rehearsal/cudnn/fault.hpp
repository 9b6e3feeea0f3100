#pragma once

namespace rehearsal {

/// What attention by cuDNN gives from now on is this many times what is right; 1 at first.
void scale_attention(float factor);

}  // namespace rehearsal
