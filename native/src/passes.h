// Runs passes for a session: builds each graph once per shape, writes its inputs, computes, hands out results.
#pragma once

#include <map>
#include <memory>
#include <vector>

#include "draft.h"
#include "targets/target.h"
#include "tree.h"

namespace dflash {

struct SessionShape {
    int context_tokens = 0;
    int prefill_chunk = 0;
    int max_rows = 1; // of a verify, root included
    ggml_type kv_k = GGML_TYPE_F16;
    ggml_type kv_v = GGML_TYPE_F16;
};

class Passes {
  public:
    // Reserves all memory and checks that the device runs every operation. `draft` may be nullptr.
    Passes(const Target & target, const Draft * draft, const SessionShape & shape);

    Compute & compute() { return compute_; }
    const SessionShape & shape() const { return shape_; }
    bool has_recurrent() const { return !timeline_.recurrent.is_empty(); }
    RecurrentState & recurrent() { return timeline_.recurrent; }
    void clear();

    // Rows join the timeline at positions [n_past, n_past + tokens.size()).
    void append(const std::vector<int32_t> & tokens, int n_past, bool has_logits, bool has_features);
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

    void fill_memory(dflash_memory & out) const;

  private:
    using CommitKey = std::pair<const Pass *, int>; // verified pass, rows kept
    struct Commit {
        ggml_context_ptr ctx;
        ggml_cgraph * graph = nullptr;
        ggml_tensor * rows = nullptr;      // I32 [t], of the tree
        ggml_tensor * conv_rows = nullptr; // I32 [n_conv_rows]
        ggml_tensor * from_rows = nullptr; // I32 [t], cache slots
        ggml_tensor * to_slots = nullptr;  // I64 [t]
    };

    int padded_rows(int n_rows) const;
    int kv_bucket(int n_slots) const;
    Pass & target_pass(const PassShape & shape);
    std::unique_ptr<Pass> build_target_pass(const PassShape & shape) const;
    DraftPass & draft_pass(int n_rows, int n_kv, int k);
    std::unique_ptr<DraftPass> build_draft_pass(int n_rows, int n_kv, int k) const;
    std::unique_ptr<Commit> build_commit(const Pass & verified, int n_kept, bool has_moves) const;
    void reserve();
    void allocate(ggml_gallocr_t allocator, ggml_cgraph * graph, const char * what);
    void forget_passes();
    void set_tree_tables(Pass & pass, const Tree & tree);

    const Target & target_;
    const Draft * draft_;
    SessionShape shape_;
    Compute compute_;
    Timeline timeline_;
    KvCache draft_cache_;
    ggml_gallocr_ptr target_memory_;
    ggml_gallocr_ptr draft_memory_;
    ggml_gallocr_ptr commit_memory_;
    std::map<PassShape, std::unique_ptr<Pass>> passes_;
    std::map<std::tuple<int, int, int>, std::unique_ptr<DraftPass>> draft_passes_;
    uint64_t clock_ = 0;

    Pass * last_ = nullptr;     // the pass whose results are read
    int last_rows_ = 0;         // real rows in it
    bool has_argmax_ = false;
    std::vector<int32_t> argmax_;
    std::vector<float> logits_;
    Tree tree_;                 // of the last verify
    std::vector<uint16_t> mask_;
    std::vector<int64_t> slots_;
    std::vector<int32_t> numbers_;
    std::vector<float> floats_;
};

} // namespace dflash
