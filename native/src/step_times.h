// How long passes take on this device, by rows and by length of context: measured, and followed from then on. Standard
// library only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace dflash {

class StepTimes {
  public:
    // `row_buckets`: the row counts that the device can verify without padding, ascending, 1 first. `block_sizes`: the
    // blocks that may be drafted, ascending; empty without a choice.
    StepTimes(std::vector<int> row_buckets, std::vector<int> block_sizes);

    const std::vector<int> & row_buckets() const { return buckets_; }
    const std::vector<int> & block_sizes() const { return blocks_; }
    size_t bucket_of(int n_rows) const;
    size_t block_of(int block_size) const;

    // Times depend on how many tokens attention looks at, so each doubling has a table of its own. A table that is entered
    // for the first time has its neighbour's figures for a guess. True when it is another table than before, and a guess.
    bool set_context(int n_past);

    // A measurement, in place of what was known.
    void set_verify_us(int n_rows, double us);
    void set_chain_us(int n_rows, double us);
    void set_draft_us(int block_size, double us);
    // A sample of daily work, which may be disturbed.
    void learn_verify(int n_rows, double us);
    void learn_chain(int n_rows, double us);
    void learn_draft(int block_size, double us);
    // A step has passed.
    void tick() { ++n_steps_; }
    // All times by this factor: the device is faster or slower today than when they were remembered.
    void scale(double factor);

    double verify_us(int n_rows) const; // interpolated, monotone in n_rows; 0 before anything is known
    // Of chains, on targets that verify them by a cheaper kind of pass. As for trees while no chain was timed.
    double chain_us(int n_rows) const;
    double draft_us(int block_size) const; // interpolated; 0 before anything is known
    // Steps since a size was last timed, and how often it was.
    int64_t age(size_t bucket) const { return n_steps_ - table().verify[bucket].step; }
    int n_samples(size_t bucket) const { return table().verify[bucket].n_samples; }
    // The shortest time that the size may turn out to take: not less than fewer rows take.
    double least_us(size_t bucket) const;
    bool is_known(size_t bucket) const { return table().verify[bucket].us > 0; }

    // As numbers, for the next load. `read` takes what `write` gave to an object with the same buckets and blocks, moves
    // `at` behind it and says whether it was sound; if not, this object must not be used any more.
    void write(std::vector<double> & out) const;
    bool read(const std::vector<double> & values, size_t & at);

  private:
    // Microseconds of one kind of pass, as recent samples have it.
    struct Time {
        double us = -1; // < 0: unknown
        int n_samples = 0;
        int64_t step = 0;         // when it was last measured
        int n_slow = 0;           // samples in a row far above `us`
        double slow_us = 0;       // the fastest of them
        bool is_outdated = false; // measured with another context
    };
    struct Table {
        std::vector<Time> verify, chain, draft;
        bool is_used = false;
    };

    Table & table() { // whoever asks for it like this is about to change it
        bucket_us_.clear();
        return tables_[context_];
    }
    const Table & table() const { return tables_[context_]; }
    void set(Time & time, double us);
    void learn(Time & time, double us);
    void refresh(Time & time, double us);
    double raw_us(size_t bucket) const;    // measured, or interpolated; 0 before anything is known
    double bucket_us(size_t bucket) const; // made monotone
    double monotone_us(size_t bucket) const;

    std::vector<int> buckets_;
    std::vector<int> blocks_;
    std::vector<Table> tables_; // by doubling of the context
    size_t context_ = 0;
    int64_t n_steps_ = 0;
    mutable std::vector<double> bucket_us_; // asked for many times a step; empty when a time has changed
};

} // namespace dflash
