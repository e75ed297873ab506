// The DFlash draft: target features in, the candidates of one block out, in one pass. Context keys and values are
// computed once per committed position and kept; the block's own rows are overwritten by the next verify.
// Source: DFlash (block diffusion drafting); file formats in draft_config.h.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "draft_config.h"
#include "draft_conv.h"
#include "draft_heads.h"
#include "kv_cache.h"
#include "targets/target.h"

namespace dflash {

// Context rows for features that were kept.
struct ContextPass {
    ContextPtr ctx;
    ggml_cgraph * graph = nullptr;
    std::vector<ggml_tensor *> inputs;
    uint64_t input_bytes = 0;
    ggml_tensor * positions = nullptr; // I32 [n]
    ggml_tensor * slots = nullptr;     // I64 [n]
};

class Draft {
  public:
    // Where a draft computes. Apart from its target it has a stream and copies of its own of what it borrows.
    struct Place {
        Device device;
        int n_threads = 0;
        bool is_apart = false;
    };
    // Check the file against the target and describe the weights. Nothing is loaded.
    Draft(std::shared_ptr<const ModelFile> file, const Target & target, const Place & place);
    Draft(const Draft &) = delete;
    Draft & operator=(const Draft &) = delete;

    const DraftConfig & config() const { return config_; }
    const Target & target() const { return target_; }
    const Device & device() const { return place_.device; }
    int n_threads() const { return place_.n_threads; }
    bool is_apart() const { return place_.is_apart; }
    const Weights & weights() const { return weights_; }
    std::vector<Products *> products() const;
    std::vector<KvShape> kv_shapes() const;

    // As for Weights: of the draft's own and of what it has copies of.
    void pretend();
    void allocate();
    bool load_next();
    uint64_t bytes_done() const;
    uint64_t bytes_total() const;
    bool is_loaded() const;
    uint64_t device_bytes() const;

    // Extend a target's pass: features -> context keys and values of every row, written at the rows' slots.
    void write_context(Pass & pass, const KvCache & cache) const;
    // Or only keep the features in rows of `kept` (F32 [n_kept_values(), some]), and compute from them later: for many rows
    // at once that costs little, and nothing where no draft is made.
    int64_t n_kept_values() const;
    void keep_features(Pass & pass, ggml_tensor * kept) const;
    void write_context(ContextPass & pass, ggml_tensor * kept, const KvCache & cache) const;
    // Fill pass.graph and the results; read_block() reads them.
    void build(DraftPass & pass, const KvCache & cache) const;

  private:
    struct Layer {
        ggml_tensor * attn_norm = nullptr;
        ggml_tensor * q_norm = nullptr;
        ggml_tensor * k_norm = nullptr;
        ggml_tensor * ffn_norm = nullptr;
        Bundle qkv;
        Linear output;
        SwiGlu ffn;
        // what only some drafts have
        Linear gate;                             // of attention's output: one value per head, or per channel
        ggml_tensor * attn_output_norm = nullptr; // before the residual sums
        ggml_tensor * ffn_output_norm = nullptr;
        ggml_tensor * scale = nullptr; // [1], of the layer's output
        std::optional<DynamicConv> attn_conv, ffn_conv;
    };

    Layer read_layer(const std::string & block);
    ggml_tensor * embed(ggml_context * ctx, ggml_tensor * tokens) const;
    // Keys [head_dim * n_head_kv, n] normed and rotated, as cache rows.
    ggml_tensor * keys(ggml_context * ctx, const Layer & layer, ggml_tensor * k, ggml_tensor * positions) const;
    void write_context(ggml_context * ctx, ggml_cgraph * graph, const std::vector<ggml_tensor *> & features, ggml_tensor * positions, ggml_tensor * slots,
                       const KvCache & cache) const;
    ggml_tensor * attention(DraftPass & pass, const KvCache & cache, size_t index, ggml_tensor * rows) const;
    ggml_tensor * feed_forward(ggml_context * ctx, const Layer & layer, ggml_tensor * rows) const;

    const Target & target_;
    Place place_;
    DraftConfig config_;
    Weights weights_;
    std::unique_ptr<Weights> borrowed_; // copies of the target's; nullptr beside it
    Rope rope_;
    ggml_tensor * embeddings_ = nullptr; // its own; nullptr: the target's
    ggml_tensor * fc_ = nullptr;
    ggml_tensor * feature_norm_ = nullptr;
    std::vector<ggml_tensor *> feature_norms_; // of each feature before the fc; empty for none
    ggml_tensor * output_norm_ = nullptr;
    std::vector<Layer> layers_;
    std::optional<DraftHead> head_;
};

// Where parameters put a draft. Throws BAD_ARGUMENT for a device that isn't there.
Draft::Place place_of(const dflash_load_params & params, const Target & target);

} // namespace dflash
