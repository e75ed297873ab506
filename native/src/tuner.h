// Chooses the size of the next step: expected committed tokens over measured time. Standard library only.
// Method and constants: design/engine.md section 7; tree verification notes sections 10 and 11.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "tree.h"

namespace dflash {

// What one step cost and brought; feeds the tuner.
struct StepOutcome {
    int n_rows = 1;          // rows verified, root included
    bool is_chain = false;   // verified by the kind of pass that only chains have
    bool has_drafted = false;
    double draft_us = 0;
    double verify_us = 0;    // verify + commit + host
    int n_committed = 0;
    const Tree * tree = nullptr;                 // nullptr when nothing was drafted
    const std::vector<int32_t> * accepted_rows = nullptr; // root first
    const std::vector<int32_t> * accepted_tokens = nullptr; // the target's own after each of them; calibrates better
};

class Tuner {
  public:
    // `row_buckets`: the row counts that the device can verify without padding, ascending, 1 first.
    explicit Tuner(std::vector<int> row_buckets);

    // Seed the time tables with a measurement (from load time, or remembered). Later outcomes move them.
    void set_verify_us(int n_rows, double us);
    void set_draft_us(double us);
    double verify_us(int n_rows) const; // interpolated, monotone in n_rows; 0 before anything is known
    double draft_us() const;
    // Of chains, on targets that verify them by a cheaper kind of pass. As for trees while no chain was timed.
    void set_chain_us(int n_rows, double us);
    double chain_us(int n_rows) const;

    // Should the next step draft at all? Off when drafting lost against plain decoding; then short probes, ever rarer.
    enum class Decision { kDraft, kProbe, kPlain };
    Decision decide();

    // Marginals with the calibrated acceptance factors applied, rows re-sorted.
    Marginals calibrate(const Marginals & marginals) const;

    // Rows to verify (root included, 1 = nothing worth verifying) out of `tree`, a best-first tree of calibrated
    // probabilities, limited to `max_rows`. Hysteresis included. Fills expected_committed for the answer. With a `chain`
    // of the same probabilities the rows may be the chain's, which `is_chain` tells.
    int choose_rows(const Tree & tree, int max_rows, float * expected_committed, const Tree * chain = nullptr, bool * is_chain = nullptr);

    void observe(const StepOutcome & outcome);

    // Measured so far, for the record and the UI: speculative over plain throughput; 0 when unknown.
    double measured_speedup() const;

  private:
    // Microseconds of one kind of pass, as recent samples have it.
    struct Time {
        double us = -1; // < 0: unknown
        int n_samples = 0;
        int64_t step = 0; // when it was last measured
        int n_slow = 0;   // samples in a row far above `us`
        double slow_us = 0; // the fastest of them
    };
    // Tokens and microseconds of speculative steps, older ones fading.
    struct Rate {
        double decay = 1;
        double tokens = 0, token_squares = 0, us = 0, weight = 0, weight_squares = 0;
        void add(double n_tokens, double n_us);
        void scale(double factor);
        double n_steps() const; // as many steps of equal weight would be as certain
    };
    // What calibrate() did to one candidate, so that its outcome is booked to the draft's own number.
    struct Origin {
        int32_t token = -1;
        int rank_class = 0;
        double probability = 0;
    };

    size_t bucket_of(int n_rows) const;
    void learn(Time & time, double us) const;
    void learn_verify(size_t bucket, double us);
    double raw_us(size_t bucket) const;    // measured, or interpolated; 0 before anything is known
    double bucket_us(size_t bucket) const; // made monotone
    double price() const;                  // tokens per microsecond that time is worth
    double speedup(const Rate & rate, double n_errors) const;
    bool is_losing() const;
    Decision decide_while_off();
    bool should_refresh_plain() const;
    size_t explore(size_t best, const std::vector<double> & scores, double tokens);
    void observe_acceptance(const StepOutcome & outcome);
    static std::vector<int> rank_classes(const float * logprobs, size_t k);
    void calibrate_conditional(Marginals & marginals) const;
    const float * conditional_row(const Tree & tree, size_t row) const;
    void book(int depth, int rank_class, double probability, bool is_hit);
    double factor(int depth, int rank_class) const;

    std::vector<int> buckets_;
    std::vector<Time> verify_;
    std::vector<Time> chain_;
    Time draft_;
    // Calibration: decayed sums per (depth, rank class).
    static constexpr int kDepths = 32;
    static constexpr int kClasses = 3;
    std::array<std::array<double, kClasses>, kDepths> expected_{};
    std::array<std::array<double, kClasses>, kDepths> hits_{};
    mutable std::vector<Origin> origins_; // n_depths x k of the last calibrate()
    mutable int n_origin_ranks_ = 0;
    mutable Marginals conditional_origin_; // of the last calibrate(), when it was conditional
    // On or off.
    std::array<Rate, 3> rates_; // short, middle, long memory
    bool is_on_ = true;
    bool has_proven_ = false;   // this time on, drafting has won
    int n_spec_since_on_ = 0, n_plain_since_probe_ = 0, probe_wait_ = 0, n_probe_left_ = 0;
    // Size.
    size_t current_ = 0;
    bool is_chain_ = false; // what was chosen last
    double credit_ = 0; // tokens that exploring may still cost
    int64_t n_steps_ = 0;
};

} // namespace dflash
