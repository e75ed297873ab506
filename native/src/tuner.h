// Chooses what the next step drafts and verifies: expected committed tokens over measured time. Standard library only.
// Method and constants: design/engine.md section 7; tree verification notes sections 10 and 11.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "calibration.h"
#include "repetition.h"
#include "step_times.h"
#include "tree.h"

namespace dflash {

// What one step cost and brought; feeds the tuner.
struct StepOutcome {
    int n_rows = 1;        // rows verified, root included
    bool is_chain = false; // verified by the kind of pass that only chains have
    int block_size = 0;    // drafted; 0: nothing was
    bool is_own = true;    // the tuner chose; else a request did
    double draft_us = 0;
    double verify_us = 0; // verify + commit + host
    int n_committed = 0;
    const Tree * tree = nullptr;                            // nullptr when nothing was drafted
    const std::vector<int32_t> * accepted_rows = nullptr;   // root first
    const std::vector<int32_t> * accepted_tokens = nullptr; // the target's own after each of them; calibrates better
};

class Tuner {
  public:
    // As StepTimes wants them.
    explicit Tuner(std::vector<int> row_buckets, std::vector<int> block_sizes = {});

    StepTimes & times() { return times_; }
    const StepTimes & times() const { return times_; }

    // Another prompt: what its text is like has to be found out.
    void begin_reply(const std::vector<int32_t> & prompt);
    // What a step committed, whoever chose it.
    void hear(const std::vector<int32_t> & tokens) { repetition_.add(tokens); }

    // Should the next step draft at all? Off when drafting loses against plain decoding; then a draft now and then, ever
    // rarer, to see whether the text has become easier.
    enum class Decision {
        kDraft,
        kProbe,  // a draft to see whether it would pay again
        kPlain,  // drafting is slower here
        kMeasure // a plain step, so that its time stays known
    };
    Decision decide();
    // The block to draft: smaller ones cost less and reach less far. At most `most`.
    int choose_block(int most);

    // Marginals of a block of `block_size` with the calibrated acceptance factors applied.
    Marginals calibrate(const Marginals & marginals, int block_size);

    // What to verify of `tree`, a best-first tree of calibrated probabilities of a block of `block_size`, or of `chain`, of
    // the same probabilities, where chains are cheaper (else nullptr).
    struct Choice {
        int n_rows = 1; // root included; 1: nothing is worth its time
        bool is_chain = false;
        bool is_measuring = false; // not the best size, but one whose time is hardly known
        double expected_committed = 1;
        double expected_us = 0; // of the whole step
    };
    Choice choose(const Tree & tree, const Tree * chain, int max_rows, int block_size);

    void observe(const StepOutcome & outcome);

    // Measured so far, for the record and the UI: speculative over plain throughput; 0 when unknown.
    double measured_speedup() const;

    // Everything learnt as numbers, for the next load of the same pair on the same device.
    std::vector<double> remembered() const;
    // Take such numbers over. Nothing changes, and false comes back, when they are not sound or of another device's kind.
    bool remember(const std::vector<double> & values);

  private:
    // Tokens and microseconds of speculative steps, older ones fading.
    struct Rate {
        double decay = 1;
        double tokens = 0, token_squares = 0, us = 0, weight = 0, weight_squares = 0;
        void add(double n_tokens, double n_us);
        void clear();
        double n_steps() const; // as many steps of equal weight would be as certain
    };
    // The best that a tree, cut at some depth, could bring at a price.
    struct Best {
        size_t bucket = 0;
        double score = 0;
    };

    double price() const; // tokens per microsecond that time is worth
    double plain_price() const;
    double speedup(const Rate & rate, double n_errors) const;
    bool is_losing() const;
    void switch_on();
    void switch_off();
    bool should_refresh_plain() const;
    bool should_probe(double cost);
    double draft_cost(int block_size) const; // in tokens of plain decoding
    double advantage(const Tree & tree, const Tree * chain, int block_size, double quality) const;
    void observe_advantage();
    size_t explore(size_t best, const std::vector<double> & scores, double tokens, double value);

    // How well one block size does. A draft is trained for one size; what it is worth at others must be seen.
    struct Block {
        Calibration calibration;
        double first = 0; // how often its first candidate is right
        int n_samples = 0;
        double lead = 0; // over the largest block, in tokens, fading
    };

    Block & block(int block_size);
    double quality(size_t index) const;
    void compare_blocks(const Tree & tree, const Tree * chain);

    StepTimes times_;
    // On or off.
    std::array<Rate, 3> rates_; // short, middle, long memory
    double last_speedup_ = 0;   // when drafting was last switched off
    bool is_on_ = true;
    bool is_probing_ = false;
    double advantage_ = 0;  // of the draft just made over a plain step, in tokens, as predicted
    double slump_ = 0;      // how far the sum of advantages is below its highest
    double purse_ = 0;      // tokens that drafts in vain may still cost
    bool has_purse_ = false;
    int n_spec_since_on_ = 0, n_plain_since_probe_ = 0, probe_wait_ = 0;
    Repetition repetition_;
    double probed_share_ = 0; // repetition at the last draft in vain
    std::vector<Block> blocks_; // as times_ has them
    size_t block_ = 0;          // the best one
    int n_since_largest_ = 0, largest_wait_ = 0;
    int32_t first_candidate_ = -1; // of the draft just made
    // Size.
    size_t current_ = 0;
    bool is_chain_ = false; // what was chosen last
    double credit_ = 0;     // tokens that exploring may still cost
};

} // namespace dflash
