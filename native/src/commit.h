// The commit: of the rows that a verify computed, keep those the target agreed with. Few launches whatever the number of
// layers: what DeltaNet layers leave behind lies at fixed addresses, all layers one behind the other, so that one gather
// and one recurrence serve them all.
#pragma once

#include <map>
#include <memory>
#include <vector>

#include "inputs.h"
#include "kv_cache.h"

namespace dflash {

// What a DeltaNet layer leaves behind in a verify of n rows for the commit of its accepted rows.
struct KeptRows {
    ggml_tensor * conv_rows = nullptr; // F32 [C, n_conv_rows + n]: state rows, then the rows' own inputs
    ggml_tensor * qkv = nullptr;       // F32 [C, n]: after convolution and activation; values are read from it
    ggml_tensor * qk = nullptr;        // F32 [S, 2 n_head_k, n]: normalised queries, then keys
    ggml_tensor * decay = nullptr;     // F32 [n_head_v, n]: g, logarithmic
    ggml_tensor * beta = nullptr;      // F32 [n_head_v, n]
};

// Their memory, for up to `n_rows` rows. One row more is never written: without decay and without an update, it leaves a
// state as it is.
class PendingRows {
  public:
    PendingRows() = default;
    PendingRows(const Compute & compute, const std::vector<RecurrentShape> & shapes, int n_rows, bool is_plan);

    // Make these results of a layer's operations land here.
    void keep(const KeptRows & rows, size_t layer) const;
    int null_row() const { return n_rows_; }
    uint64_t bytes() const { return bytes_; }
    // Move the recurrent state of all layers over `rows` (I32 [t, 2 n_layers], equal columns); `conv_rows` (I32
    // [n_conv_rows, n_layers], likewise) names the convolution rows that remain.
    void build_commit(ggml_context * ctx, ggml_cgraph * graph, const RecurrentState & state, ggml_tensor * rows, ggml_tensor * conv_rows) const;

  private:
    RecurrentShape shape_;
    int64_t n_layers_ = 0;
    int n_rows_ = 0;
    bool is_plan_ = false;
    ContextPtr ctx_;
    ggml_backend_buffer_ptr buffer_;
    ggml_tensor * conv_rows_ = nullptr; // [C, n_conv_rows + n_rows, n_layers]
    ggml_tensor * qkv_ = nullptr;       // [C, n_rows + 1, n_layers]
    ggml_tensor * qk_ = nullptr;        // [2 n_head_k S, n_rows + 1, n_layers]
    ggml_tensor * gates_ = nullptr;     // [n_head_v, n_rows + 1, 2 n_layers]: all decays, then all betas
    uint64_t bytes_ = 0;
};

// Commit graphs by the number of rows they keep.
class Commits {
  public:
    struct Memory {
        const PendingRows & pending;
        const RecurrentState & recurrent;
        const KvCache & kv;
        const KvCache & draft; // of a draft; empty without one
    };
    // Reserves for `usual_rows` kept rows at most, as many as a draft's path has; takes more when up to `max_rows` are kept
    // all the same. Throws OUT_OF_MEMORY or UNSUPPORTED.
    Commits(Compute & compute, Memory memory, int usual_rows, int max_rows, bool is_plan);

    // Start keeping `rows` (root first, ascending) of the verify at positions n_past and up.
    void start(const std::vector<int32_t> & rows, int n_past);
    uint64_t bytes() const;

  private:
    struct Graph {
        ContextPtr ctx;
        ggml_cgraph * graph = nullptr;
        std::vector<ggml_tensor *> inputs;
        uint64_t input_bytes = 0;
        ggml_tensor * rows = nullptr;      // I32 [t, 2 n_layers]
        ggml_tensor * conv_rows = nullptr; // I32 [n_conv_rows, n_layers]
        ggml_tensor * from_rows = nullptr; // I32 [t, n_moved_together], cache slots
        ggml_tensor * to_slots = nullptr;  // I64 [t]
    };

    int counted(int n_kept) const;
    std::unique_ptr<Graph> build(int n_kept, bool has_moves) const;
    Graph & graph_for(int n_kept, bool has_moves);
    void write_inputs(Graph & graph, const std::vector<int32_t> & rows, int n_past);

    Compute & compute_;
    Memory memory_;
    bool is_plan_;
    ggml_gallocr_ptr allocator_;
    InputBlock inputs_;
    std::map<std::pair<int, bool>, std::unique_ptr<Graph>> graphs_;
    uint64_t planned_bytes_ = 0; // of the allocator, in plans
};

} // namespace dflash
