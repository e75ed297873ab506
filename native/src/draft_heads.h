// From a draft's hidden rows to candidates: the likeliest tokens of every drafted position and, for drafts whose head
// looks at the token before (DFlash2, DSpark), how likely each is after each candidate of the position above.
#pragma once

#include <vector>

#include "draft_config.h"
#include "targets/target.h"

namespace dflash {

// One draft pass: [root, mask, mask, ...] against the context.
struct DraftPass {
    int n_rows = 0; // block positions, root included
    int n_kv = 0;
    int k = 0;            // candidates per drafted position: asked for, and after build() what the draft gives
    int64_t n_vocab = 0;  // the target's: ids of a failed computation may be outside
    int64_t n_depths = 0; // drafted positions
    ContextPtr ctx;
    ggml_cgraph * graph = nullptr;
    int n_runs = 0;
    // inputs
    std::vector<ggml_tensor *> inputs;    // those below that are written anew for every run
    uint64_t input_bytes = 0;
    ggml_tensor * tokens = nullptr;       // I32 [n]
    ggml_tensor * positions = nullptr;    // I32 [n]
    ggml_tensor * slots = nullptr;        // I64 [n]
    ggml_tensor * mask_end = nullptr;     // F16 [some, n], as in Pass: full layers; nullptr when there are none
    ggml_tensor * mask = nullptr;         // F16 [n_kv, n]
    int first_sliding = 0;                // sliding layers look at slots [first_sliding, n_kv)
    ggml_tensor * mask_sliding = nullptr; // F16 [n_kv - first_sliding, n]; nullptr when there are none
    // results; the candidates of each drafted position are unordered
    std::vector<ggml_tensor *> results;    // those below that read_block() wants, all but `hidden`
    ggml_tensor * hidden = nullptr;        // F32 [n_embd, n], after the output norm
    int chunk = 0;                         // tokens per chunk of the vocabulary; 0: `ids` are the target's tokens
    ggml_tensor * chunks = nullptr;        // I32 [k, n_depths]: the chunks that hold the candidates
    ggml_tensor * ids = nullptr;           // I32 [k, n_depths], or with chunks [k, k, n_depths], within those
    ggml_tensor * probabilities = nullptr; // F32, of each of `ids`, the token before left out of account
    // of heads that look at the token before
    ggml_tensor * after_root = nullptr;          // F32 [k, 1]: what the root adds to the log-probabilities of position 0
    ggml_tensor * after = nullptr;               // F32 [k, k, n_depths - 1]: what each candidate (ne1) adds in the next position
    ggml_tensor * chain = nullptr;               // DSpark: I32 [1, n_depths], the greedy path
    ggml_tensor * chain_probabilities = nullptr; // DSpark: F32 [k, n_depths], of `ids` among all tokens, on the greedy path
    ggml_tensor * confidence = nullptr;          // DSpark with that head: F32 [1, n_depths], logits, the hidden row's share
    ggml_tensor * confidence_root = nullptr;     // F32 [1, 1]: the root's share; nullptr when the head doesn't look at it
    ggml_tensor * confidence_after = nullptr;    // F32 [1, k (n_depths - 1)]: each candidate's share in the next position
};

class DraftHead {
  public:
    // `borrowed`: copies of the target's weights, or nullptr to use the target's own. Throws BAD_FILE or UNSUPPORTED.
    DraftHead(Weights & weights, Weights * borrowed, const DraftConfig & config, const Target & target);

    // Fill the results of `pass`. `drafted` is the part of pass.hidden that drafts, F32 [n_embd, d].
    void build(DraftPass & pass, ggml_tensor * drafted) const;

  private:
    ggml_tensor * logits(ggml_context * ctx, ggml_tensor * drafted) const;
    int64_t chunk_for(int k) const;
    void build_candidates(DraftPass & pass, ggml_tensor * probabilities) const;
    ggml_tensor * likeliest(ggml_context * ctx, ggml_tensor * probabilities, int k) const;
    ggml_tensor * target_ids(ggml_context * ctx, ggml_tensor * ids) const;
    void build_selector(DraftPass & pass, ggml_tensor * drafted, ggml_tensor * probabilities) const;
    void build_markov(DraftPass & pass, ggml_tensor * drafted, ggml_tensor * logits) const;
    void build_confidence(DraftPass & pass, ggml_tensor * drafted, ggml_tensor * root, ggml_tensor * before) const;

    const Target & target_;
    bool is_cpu_;
    DraftKind kind_;
    int64_t n_embd_;
    int64_t n_vocab_; // of the logits: the target's, or fewer
    int selector_top_k_;
    float logit_scale_;
    float logit_softcap_;
    Linear output_;                             // own head or copy; weight nullptr: the target's
    ggml_tensor * target_of_ = nullptr;         // reduced vocabulary: F32 [1, n_vocab_], the target's id of each row
    ggml_tensor * predecessor_ = nullptr;       // DFlash2's table, or DSpark's w1: [rank, target's vocabulary]
    ggml_tensor * successor_ = nullptr;         // DFlash2's table, or DSpark's w2: [rank, n_vocab_]
    Linear hidden_;                             // DFlash2: what the tables' products are weighted with
    Linear markov_;                             // DSpark: w2 again, as a product
    ggml_tensor * confidence_weight_ = nullptr; // F32 [n_embd + confidence_rank_, 1]: hidden row, then the token before
    ggml_tensor * confidence_bias_ = nullptr;   // F32 [1]
    int64_t confidence_rank_ = 0;
};

} // namespace dflash
