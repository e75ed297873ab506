// The step: draft, tree, verify, commit. READ THIS FIRST.
//
//   root   = last committed token, not yet in the target's cache
//   block  = draft(root, context)          one pass -> the likeliest tokens per depth
//   tree   = best-first over the block     size chosen by the tuner, or by the request
//   rows   = verify(root + nodes)          one target pass
//   path   = walk(tree, choose)            choose = the target's own token: argmax, or a draw from its distribution
//   commit(path, bonus)                    keep the path's rows; the bonus is the next root
//
// Invariant between calls: the cache holds a row for every token of `cached_`, and `root_` comes right after them.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "measuring.h"
#include "passes.h"
#include "prefix_cache.h"
#include "sampler.h"
#include "tuner.h"

namespace dflash {

class Session {
  public:
    Session(const Target & target, const Draft * draft, const dflash_session_params & params);

    void begin(const std::vector<int32_t> & prompt, const dflash_generation & generation, dflash_begun & out);
    // True when the prompt is done.
    bool prefill(dflash_progress & out);
    // True when the reply is finished.
    bool step(dflash_step & out);
    // The halves of a step; see dflash.h and proposal.cpp.
    void propose(dflash_step & out);
    void likeliest(int index, int k, int32_t * ids, float * logprobs);
    bool settle(int n_keep, const uint32_t * allowed, int n_words, dflash_step & out);
    void cancel();
    void fill_memory(dflash_memory & out) const;
    void fill_prefixes(dflash_prefixes & out) const;
    // What the tuner has learnt, for the next session with this pair on this device.
    std::vector<double> tuning() const { return tuner_.remembered(); }

    // Probes; see dflash.h and probes.cpp.
    void reset();
    void probe_append(const std::vector<int32_t> & tokens, float * logits);
    Marginals probe_draft(int32_t root, int block_size, int k, float * hidden); // 0: as trained
    void probe_verify(const std::vector<int32_t> & tokens, const std::vector<int32_t> & parents, float * logits);
    void probe_commit(const std::vector<int32_t> & rows);

    const Target & target() const { return target_; }
    const Draft * draft() const { return draft_; }

  private:
    enum class Phase { kIdle, kPrefill, kDecode, kProposed };

    struct Plan {
        Tree tree;
        int64_t draft_us = 0;
        int64_t context_us = 0;         // spent on what plain steps left for the draft
        int32_t reason = DFLASH_REASON_NO_DRAFT;
        int block_size = 0;             // drafted; 0: nothing was
        double expected_committed = 0;  // 0: the tuner had no say
        double expected_us = 0;
        bool is_own = false;            // the tuner's choice, and not the request's
    };

    // What a pass said, before it is committed.
    struct Proposal {
        Plan plan;
        Accepted accepted;
        std::vector<float> logprobs; // of accepted.tokens
        int64_t step_us = 0;         // taken so far
        int64_t verify_us = 0;
        bool is_free = true;         // the target's own: nothing was cut or chosen anew
    };

    void require_tokens(const std::vector<int32_t> & tokens, const char * what) const;
    static PrefixCache::Shape prefix_shape(Passes & passes, int64_t most_bytes);
    int n_past() const { return static_cast<int>(cached_.size()); }
    bool wants_draft() const { return draft_ && generation_.draft_mode != DFLASH_DRAFT_OFF; }
    // reuse.cpp: what of a prompt need not be read.
    int reuse(const std::vector<int32_t> & prompt, dflash_begun & out);
    void save_conversation();
    int restore(const std::vector<int32_t> & prompt, const PrefixCache::Match & match, int n_alike);
    void plan_checkpoints();
    int checkpoint_spacing() const;
    void save_checkpoint();
    void append(const std::vector<int32_t> & tokens, bool has_logits, bool has_features);
    void step_plainly();
    bool has_draft_context() const { return n_draft_rows_ + n_kept_ >= n_past(); }
    void complete_draft_context();
    Plan plan_step();
    void draft_and_choose(Plan & plan, int room);
    void run_proposal();
    bool finish_proposal(dflash_step & out);
    size_t n_until_end(const std::vector<int32_t> & tokens, int32_t * finish) const;
    void finish_step(const Plan & plan, const Accepted & accepted, dflash_step & out);
    void tell_tuner(const Plan & plan, const Accepted & accepted, const dflash_step & record);
    void follow_context();

    const Target & target_;
    const Draft * draft_;
    Passes passes_;
    Tuner tuner_;

    Phase phase_ = Phase::kIdle;
    std::vector<int32_t> cached_;
    int32_t root_ = -1;
    int n_draft_rows_ = 0;        // leading rows whose draft context is computed
    int n_kept_ = 0;              // rows after them whose features wait: plain steps leave that work to the next draft
    bool is_state_lost_ = false;  // recurrent state may be half moved: a pass was interrupted
    PrefixCache prefixes_;
    std::vector<Checkpoint> checkpoints_; // of `cached_`, ascending; always empty without recurrent layers
    std::vector<int> places_;             // where the prompt's prefill takes further ones
    int64_t save_us_ = 0;
    int64_t restore_us_ = 0;
    uint64_t n_restores_ = 0;

    dflash_generation generation_ = {};
    std::optional<Sampler> sampler_;
    Proposal proposal_; // in phase kProposed
    std::vector<int32_t> prompt_;
    int max_tokens_ = 0;
    bool is_context_limit_ = false; // max_tokens_ is the room left, not what was asked for
    int n_reply_ = 0;

    double work_us_ = 0;    // prefill and steps so far
    double measure_us_ = 0; // of it, spent on measuring anew
};

} // namespace dflash
