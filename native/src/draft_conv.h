// DFlash2's grouped dynamic convolution along the rows of a block: a causal kernel that is part fixed, part computed
// from each row. One stands around attention and one around the feed-forward part of every layer.
#pragma once

#include "targets/blocks.h"

namespace dflash {

class DynamicConv {
  public:
    // `name` is "attn" or "ffn". Throws BAD_FILE.
    DynamicConv(Weights & weights, const std::string & block, const std::string & name, int64_t n_embd, int64_t n_taps, int64_t group);

    // The computed part of both kernels, F32 [2 * n_taps * n_embd / group, n], from the rows that enter the part.
    ggml_tensor * kernels(ggml_context * ctx, ggml_tensor * rows) const { return apply(ctx, projection_, rows); }
    // Side 0 filters what enters the part, side 1 what leaves it. Rows before the block count as zero.
    ggml_tensor * filter(ggml_context * ctx, ggml_tensor * rows, ggml_tensor * kernels, int side) const;

  private:
    ggml_tensor * base_ = nullptr; // F32 [n_embd, n_taps, 2]
    Linear projection_;            // group fastest, then tap, then side
    int64_t n_taps_;
    int64_t group_;
};

} // namespace dflash
