// How far a draft's own probabilities can be believed: what has come true of what was promised, by depth and rank.
// Standard library only.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "tree.h"

namespace dflash {

// Which way through the drafted tree the target took.
struct Verdict {
    const Tree * tree = nullptr;
    int n_rows = 1;                                         // of the tree that were verified
    const std::vector<int32_t> * accepted_rows = nullptr;   // root first
    const std::vector<int32_t> * accepted_tokens = nullptr; // the target's own after each of them, where they are known
};

class Calibration {
  public:
    // Marginals with what was learnt applied, rows re-sorted; conditional ones keep their candidates' places. Remembers
    // what the draft said, for the next observe().
    Marginals calibrate(const Marginals & marginals);
    // Learn from the step for which calibrate() was asked last.
    void observe(const Verdict & verdict);
    // The next tree comes without calibrate().
    void forget_origins();

    // As numbers, for the next load; see StepTimes.
    void write(std::vector<double> & out) const;
    bool read(const std::vector<double> & values, size_t & at);

  private:
    // What calibrate() did to one candidate, so that its outcome is booked to the draft's own number.
    struct Origin {
        int32_t token = -1;
        int rank_class = 0;
        double probability = 0;
    };
    static constexpr int kDepths = 32;
    static constexpr int kClasses = 3;
    using Sums = std::array<std::array<double, kClasses>, kDepths>;

    std::array<double, kClasses> factors(int depth) const;
    void calibrate_conditional(Marginals & marginals) const;
    const float * conditional_row(const Tree & tree, size_t row) const;
    void book(int depth, int rank_class, double probability, bool is_hit);
    void book_row(const Verdict & verdict, size_t i);
    void book_children(const Verdict & verdict, size_t i);
    static std::vector<int> rank_classes(const float * logprobs, size_t k);

    Sums expected_{}; // decayed
    Sums hits_{};
    std::vector<Origin> origins_; // n_depths x k of the last calibrate()
    int n_origin_ranks_ = 0;
    Marginals conditional_origin_; // of the last calibrate(), when it was conditional
};

} // namespace dflash
