// PFlash's scorer: how much the rows of a question look at each token of a long text before it.
//
// A small model reads the text in windows, each from position 0 with a short overlap, so time and memory grow linearly
// with the text. Keys of some middle layers are kept as they are before rotation; the question's queries, before rotation
// too, then look at all of them at once: without positions, what lies near the question has no advantage. A token's mass is
// the geometric mean, over the heads of these layers, of the largest probability that a row of the question gives it there.
#pragma once

#include <memory>
#include <vector>

#include "inputs.h"
#include "targets/target.h"

namespace dflash {

class Scorer {
  public:
    // Reserves all memory for a text of params.text_tokens. A plan has the sizes (fill_memory) and can run nothing.
    Scorer(const Target & target, const dflash_scorer_params & params, bool is_plan = false);

    // Whole windows that the text shares with the last one, from the start, are not read again.
    // weights: one per token of the question, not negative, their sum above 0; what a row sees counts so much of what the
    // heaviest sees. Empty: all alike.
    void begin(const std::vector<int32_t> & text, const std::vector<int32_t> & question, const std::vector<float> & weights);
    // One piece of the text, or the question. True when the masses are there.
    bool advance(dflash_progress & out);
    // One per token of the text, summing to no particular value. Throws BAD_STATE before the end.
    const std::vector<float> & masses() const;
    void cancel() { compute_.is_cancelled.store(true, std::memory_order_relaxed); }
    void fill_memory(dflash_memory & out) const;

  private:
    static std::vector<KvShape> first_shapes(const Target & target, int n);
    void learn_products();
    void fill_windows_mask();
    std::unique_ptr<Pass> build_pass(int n_rows, int n_kv, int n_streams) const;
    void reserve();
    struct Readout {
        ContextPtr ctx;
        ggml_cgraph * graph = nullptr;
        ggml_tensor * weights = nullptr; // F32 [1, n_rows], an input
        ggml_tensor * out = nullptr;
    };
    Readout build_readout(size_t layer, int n_text, int n_rows) const;
    void begin_pass(const Pass & pass, const std::vector<int32_t> & tokens);
    void run(const Pass & pass);
    void run_windows();
    void run_rows(const std::vector<int32_t> & tokens, int position, int first_key_slot, int n_kept);
    void run_question();
    void read_out();

    const Target & target_;
    bool is_plan_;
    Compute compute_;
    int most_text_;
    int n_window_; // text tokens per window, overlap not counted
    int n_together_; // whole windows per pass
    int n_rows_;   // of any other pass, at most
    int n_slots_;  // that such a pass looks at
    int first_;    // attention layers whose keys are kept, counted among the attention layers
    int end_;
    Timeline timeline_; // of one window
    Tap tap_;
    ggml_tensor * windows_mask_ = nullptr; // F16 [slots, rows of a window, 1, n_together_], constant; nullptr for one
    ContextPtr kept_ctx_;
    ggml_backend_buffer_ptr kept_;
    uint64_t kept_bytes_ = 0;
    InputBlock inputs_;
    ggml_gallocr_ptr pass_memory_;
    ggml_gallocr_ptr readout_memory_;
    uint64_t graph_bytes_ = 0;

    std::vector<int32_t> text_;
    std::vector<int32_t> question_;
    std::vector<float> weights_;
    int n_done_ = 0;
    int position_ = 0;         // of the next row in its window
    bool is_begun_ = false;
    std::vector<uint8_t> before_question_; // recurrent state, once a question ran; empty before
    std::vector<float> masses_; // empty until they are there
};

} // namespace dflash
