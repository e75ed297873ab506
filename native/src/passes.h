// Runs passes for a session: builds each graph once per shape, writes its inputs, starts it, hands out results. Work goes
// to the device in order and runs while the host goes on; asking for a result waits for it.
#pragma once

#include <map>
#include <memory>
#include <vector>

#include "commit.h"
#include "drafting.h"
#include "graphs.h"
#include "inputs.h"
#include "targets/target.h"
#include "tree.h"

namespace dflash {

// Rows of a prompt that are computed at a time when nothing else is said. Large devices take more: it is faster, and the
// memory is not missed.
int default_prefill_chunk(const Device & device);

class Passes {
  public:
    // Reserves all memory and checks that the device runs every operation. `draft` may be nullptr.
    // A plan has the sizes (fill_memory) and can run nothing.
    Passes(const Target & target, const Draft * draft, const SessionShape & shape, bool is_plan = false);

    Compute & compute() { return compute_; }
    const SessionShape & shape() const { return shape_; }
    const Target & target() const { return target_; }
    bool has_recurrent() const { return !timeline_.recurrent.is_empty(); }
    // The recurrent state as it is when all work has run.
    RecurrentState & recurrent();
    // The target's KV cache, or the draft's, likewise; for rows to be saved and restored.
    const KvCache & resting_cache(bool is_draft);
    void clear();

    // Rows join the timeline at positions [n_past, n_past + tokens.size()).
    void append(const std::vector<int32_t> & tokens, int n_past, bool has_logits, bool has_features);
    // One row, with logits, whose features wait in place `kept_row` (below kMostKept) for write_kept().
    static constexpr int kMostKept = Drafting::kMostKept;
    void append_keeping(int32_t token, int n_past, int kept_row);
    // The draft's context of rows [first, first + n) from places 0 to n - 1.
    void write_kept(int first, int n);
    // Whether verify() runs the cheaper kind of pass that a tree without branches allows.
    bool is_chain_pass(const Tree & tree) const;
    // Root and tree after n_past rows. Nothing is committed.
    void verify(const Tree & tree, int n_past, bool has_features);
    // Keep `rows` (root first, ascending) of the tree just verified.
    void commit(const std::vector<int32_t> & rows, int n_past);
    // Results of the last append or verify with logits.
    const std::vector<int32_t> & argmax();
    const float * logits(int row); // n_vocab floats, until the next call
    const Tree & verified_tree() const { return tree_; } // of the last verify; empty before
    // Draft a block after `root`, which stands at position n_past. hidden: n_rows x n_embd, or nullptr.
    Marginals draft_block(int32_t root, int n_past, int block_size, int k, float * hidden);

    // Whether the last append, verify or draft took no longer than it will from now on.
    bool is_warm() const { return is_warm_; }
    bool is_draft_warm() const { return !drafting_ || drafting_->is_warm(); }

    void fill_memory(dflash_memory & out) const;

  private:
    void learn_products();
    int padded(int n_rows) const;
    int kv_bucket(int n_slots) const;
    bool has_shared_draft() const { return drafting_ && !drafting_->is_apart(); }
    PassShape shape_of(PassKind kind, int n_rows, int n_kv, bool has_logits, bool has_features) const;
    std::unique_ptr<Pass> build_target_pass(const PassShape & shape) const;
    int first_seen(int n_kv, int n_rows) const;
    void build_constants();
    void reserve();
    Pass & target_pass(const PassShape & shape);
    void append_rows(const std::vector<int32_t> & tokens, int n_past, const PassShape & shape, int kept_row);
    void run(Pass & pass, int n_real, const char * what);
    void check_replay();

    const Target & target_;
    SessionShape shape_;
    bool is_plan_;
    Compute compute_;
    Timeline timeline_;
    std::unique_ptr<Drafting> drafting_; // nullptr without a draft
    KvCache no_cache_;                   // of no draft, and what commits see of one that is apart
    PendingRows pending_;
    std::unique_ptr<Commits> commits_; // nullptr when nothing is ever verified
    // Constants of all passes: a row of a mask that hides nothing, and an identity.
    ContextPtr constants_ctx_;
    ggml_backend_buffer_ptr constants_;
    ggml_tensor * visible_ = nullptr;  // F16 [n_slots]
    ggml_tensor * identity_ = nullptr; // F32 [64, 64]
    InputBlock target_inputs_;
    ResultBlock results_;
    ggml_gallocr_ptr target_memory_;
    std::map<PassShape, std::unique_ptr<Pass>> passes_;
    uint64_t clock_ = 0;
    uint64_t planned_bytes_ = 0; // of target_memory_, in plans

    Pass * last_ = nullptr;     // the pass whose results are read
    int last_rows_ = 0;         // real rows in it
    uint64_t last_waits_ = 0;   // waits before it was started
    bool is_warm_ = true;
    bool has_argmax_ = false;
    std::vector<int32_t> argmax_;
    std::vector<float> logits_;
    Tree tree_;                 // of the last verify
};

} // namespace dflash
