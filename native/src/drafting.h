// Runs the draft for a session: blocks, and the context of committed rows. Beside its target it shares the target's stream.
// A draft on a device of its own has a stream of its own: the features of committed rows come to it through the host.
#pragma once

#include <map>
#include <memory>
#include <vector>

#include "draft.h"
#include "graphs.h"
#include "inputs.h"
#include "tree.h"

namespace dflash {

class Drafting {
  public:
    static constexpr int kMostKept = 64;

    // Reserves all memory and checks that the device runs every operation. `target` is the target's stream.
    Drafting(const Draft & draft, Compute & target, const SessionShape & shape, bool is_plan);
    Drafting(const Drafting &) = delete;
    Drafting & operator=(const Drafting &) = delete;

    const Draft & draft() const { return draft_; }
    bool is_apart() const { return own_ != nullptr; }
    const KvCache & cache() const { return cache_; }
    // Where target passes keep features, on the target's device: F32 [values, at least kMostKept; apart: a chunk of a prompt].
    ggml_tensor * kept() const { return kept_; }

    // The draft's context of positions [first, first + n) from the first n kept rows.
    void write_kept(int first, int n);
    // Apart only: of positions from `first` on, from these kept rows.
    void write_rows(const std::vector<int32_t> & rows, int first);
    // Draft a block after `root`, which stands at position n_past. hidden: n_rows x n_embd, or nullptr.
    Marginals draft_block(int32_t root, int n_past, int block_size, int k, float * hidden);
    // Whether the last block took no longer than it will from now on.
    bool is_warm() const { return is_warm_; }

    void wait();
    void clear();
    // Adds the draft's parts; what lies on the target's device joins compute_bytes.
    void fill_memory(dflash_memory & out) const;

  private:
    Compute & compute() { return own_ ? *own_ : target_; }
    const Compute & compute() const { return own_ ? *own_ : target_; }
    const Device & device() const { return compute().device(); }
    int padded(int n_rows) const;
    void build_constants();
    void reserve();
    std::unique_ptr<DraftPass> build_pass(int n_rows, int n_kv, int k) const;
    std::unique_ptr<ContextPass> build_context_pass(int n_rows) const;
    DraftPass & pass_for(int n_rows, int n_kv, int k);
    ContextPass & context_pass_for(int n_rows);
    void place(const std::vector<ggml_tensor *> & inputs, ggml_cgraph * graph, const Purpose & purpose);
    void receive(const std::vector<int32_t> & rows);
    void run_context(int first, int n);

    const Draft & draft_;
    Compute & target_;
    SessionShape shape_;
    bool is_plan_;
    std::unique_ptr<Compute> own_; // apart only
    KvCache cache_;
    ContextPtr kept_ctx_;
    ggml_backend_buffer_ptr kept_buffer_;
    ggml_tensor * kept_ = nullptr;
    ContextPtr constants_ctx_;
    ggml_backend_buffer_ptr constants_;
    ggml_tensor * visible_ = nullptr;  // F16 [n_slots]: zeros hide nothing
    ggml_tensor * received_ = nullptr; // no constant: kept rows as they are here; beside the target kept_ itself
    InputBlock inputs_;
    ResultBlock results_;
    ggml_gallocr_ptr memory_;
    uint64_t planned_bytes_ = 0; // of memory_, in plans
    std::map<std::tuple<int, int, int>, std::unique_ptr<DraftPass>> passes_;
    std::map<int, std::unique_ptr<ContextPass>> context_passes_;
    std::vector<uint8_t> staging_;
    bool is_warm_ = true;
};

} // namespace dflash
