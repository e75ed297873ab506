// The DFlash draft: target features in, one block of marginals out, in one pass. Context keys and values are computed
// once per committed position and kept; the block's own rows are overwritten by the next verify.
// Source: DFlash (block diffusion drafting); file formats in draft_config.h.
#pragma once

#include <memory>
#include <vector>

#include "draft_config.h"
#include "kv_cache.h"
#include "targets/target.h"

namespace dflash {

// One draft pass: [root, mask, mask, ...] against the context.
struct DraftPass {
    int n_rows = 0; // block positions, root included
    int n_kv = 0;
    int k = 0;      // candidates per position
    ggml_context_ptr ctx;
    ggml_cgraph * graph = nullptr;
    // inputs
    ggml_tensor * tokens = nullptr;       // I32 [n]
    ggml_tensor * positions = nullptr;    // I32 [n]
    ggml_tensor * slots = nullptr;        // I64 [n]
    ggml_tensor * mask = nullptr;         // F16 [n_kv, n], full layers; nullptr when there are none
    ggml_tensor * mask_sliding = nullptr; // F16 [n_kv, n], sliding layers; nullptr when there are none
    // results
    ggml_tensor * ids = nullptr;          // I32 [k, n - 1], unordered
    ggml_tensor * probabilities = nullptr; // F32 [k, n - 1], of `ids`
    ggml_tensor * hidden = nullptr;       // F32 [n_embd, n], after the output norm
};

class Draft {
  public:
    // Check the file against the target and describe the weights. Nothing is loaded.
    Draft(std::shared_ptr<const ModelFile> file, const Target & target);
    Draft(const Draft &) = delete;
    Draft & operator=(const Draft &) = delete;

    const DraftConfig & config() const { return config_; }
    const Target & target() const { return target_; }
    Weights & weights() { return weights_; }
    const Weights & weights() const { return weights_; }
    std::vector<KvShape> kv_shapes() const;

    // Extend a target's pass: features -> context keys and values of every row, written at the rows' slots.
    void write_context(Pass & pass, const KvCache & cache) const;
    // Fill pass.graph.
    void build(DraftPass & pass, const KvCache & cache) const;

  private:
    struct Layer {
        ggml_tensor * attn_norm = nullptr;
        ggml_tensor * q_norm = nullptr;
        ggml_tensor * k_norm = nullptr;
        ggml_tensor * ffn_norm = nullptr;
        Linear q, k, v, output;
        SwiGlu ffn;
    };

    // Keys of `rows` [n_embd, n], normed and rotated, as cache rows.
    ggml_tensor * keys(ggml_context * ctx, const Layer & layer, ggml_tensor * rows, ggml_tensor * positions) const;

    const Target & target_;
    DraftConfig config_;
    Weights weights_;
    Rope rope_;
    ggml_tensor * fc_ = nullptr;
    ggml_tensor * feature_norm_ = nullptr;
    ggml_tensor * output_norm_ = nullptr;
    std::vector<Layer> layers_;
};

} // namespace dflash
