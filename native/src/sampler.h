// Logits -> token. Exact under speculation: the n-th draw of a reply depends on the seed, on n and on the target's
// logits only, never on how the rows were batched or drafted. Standard library only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

namespace dflash {

struct SamplerParams {
    float temperature = 0;
    int top_k = 0;
    float top_p = 1;
    float min_p = 0;
    float repeat_penalty = 1;
    float frequency_penalty = 0;
    float presence_penalty = 0;
    int penalty_window = 256; // -1: all
    uint64_t seed = 0;
    bool is_greedy() const { return temperature <= 0; }
    bool has_penalties() const { return repeat_penalty != 1 || frequency_penalty != 0 || presence_penalty != 0; }
    // Whole logits rows are needed on the host; an argmax is not enough.
    bool needs_logits() const { return !is_greedy() || has_penalties(); }
};

class Sampler {
  public:
    Sampler(const SamplerParams & params, int n_vocab);

    const SamplerParams & params() const { return params_; }

    // Start a reply: `history` is the prompt.
    void begin(const std::vector<int32_t> & history);

    // The token drawn from `logits` (n_vocab) as reply token number n_reply + path.size(), after the history and the
    // tokens of `path` (not yet committed). Order: penalties, temperature, top-k, top-p, min-p, draw. Const: a draw for
    // the same place gives the same token.
    int32_t choose(const float * logits, const std::vector<int32_t> & path) const;

    // The same among the tokens whose bit is set in `allowed` (n_words of 32 each), drawn independently of `choose`. Throws
    // when no allowed token has a number for its logit.
    int32_t choose_allowed(const float * logits, const std::vector<int32_t> & path, const uint32_t * allowed, int n_words) const;

    // The next draw is the one after `n` more reply tokens, although none joined the history (statistics on one row).
    void skip_draws(uint64_t n) { n_reply_ += n; }

    // `tokens` joined the reply.
    void commit(const std::vector<int32_t> & tokens);

  private:
    size_t window_begin(size_t n_tokens) const;
    void count(int32_t token, int n) const;
    void move_window(const std::vector<int32_t> & path, int sign) const;
    const float * penalize(const float * logits, const std::vector<int32_t> & path) const;
    int32_t pick(const float * logits, double u) const;

    SamplerParams params_;
    int n_vocab_;
    std::vector<int32_t> history_;
    uint64_t n_reply_ = 0;
    mutable std::unordered_map<int32_t, int> counts_; // tokens in the penalties' window of `history_`
    // Room for one draw, kept to spare allocations.
    mutable std::vector<float> scratch_;
    mutable std::vector<float> allowed_logits_;
    mutable std::vector<int32_t> order_;
    mutable std::vector<double> block_sums_;
};

// log softmax(logits)[token], in double.
double log_probability(const float * logits, int n_vocab, int32_t token);

// A uniform number in [0, 1) for draw number `index` of `seed` (counter-based, so draws can be repeated).
double uniform_draw(uint64_t seed, uint64_t index);

} // namespace dflash
