// Chooses what the next step drafts and verifies: expected committed tokens over measured time. Standard library only.
// draft_switch.h says whether to draft at all, step_times.h what it takes, calibration.h how far the draft can be believed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "calibration.h"
#include "draft_switch.h"
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
    void hear(const std::vector<int32_t> & tokens) { switch_.hear(tokens); }

    // Should the next step draft at all?
    using Decision = DraftSwitch::Decision;
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
    double measured_speed_up() const { return switch_.measured_speed_up(times_); }

    // Everything learnt as numbers, for the next load of the same pair on the same device.
    std::vector<double> remembered() const;
    // Take such numbers over. Nothing changes, and false comes back, when they are not sound or of another device's kind.
    bool remember(const std::vector<double> & values);
    // All times, and what followed from them: they turn out to be another kind of device's. How far the draft can be
    // believed stays.
    void forget_device();

  private:
    double price() const; // tokens per microsecond that time is worth
    double plain_price() const;
    double draft_cost(int block_size) const; // in tokens of plain decoding
    double advantage(const Tree & tree, const Tree * chain, int block_size, double quality) const;
    Choice choose_chain(const Tree & chain, int limit, double draft_us, double value, double least) const;
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
    DraftSwitch switch_;
    double advantage_ = 0;  // of the draft just made over a plain step, in tokens, as predicted
    // Blocks.
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
