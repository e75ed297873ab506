// Times of passes; see step_times.h.
#include "step_times.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <utility>

#include "tuner_numbers.h"

namespace dflash {
namespace {

constexpr double kTimeWeight = 0.1;  // of a new sample, once there are some
constexpr double kLargestJump = 1.3; // a sample counts as at most this many times what was expected
constexpr double kLargestDrift = 4;  // the same where the context has changed
constexpr int kSettled = 4;          // samples after which a time is believed
constexpr int kMostSamples = 1000;
constexpr double kLargestGain = 0.8; // a time that is known will hardly turn out to be shorter than this much of it
constexpr int kSlowSteps = 3;
constexpr int64_t kStaleSteps = 64;
constexpr double kSharedDrift = 0.5; // how much of a change of one size is taken to be true of all
constexpr double kRowExponent = 0.4; // guess for sizes while only one is known: t grows with rows to this power
constexpr double kLongestUs = 1e9;
constexpr int kFirstTable = 512; // the first table is for contexts below this, each further one for a doubling
constexpr size_t kTables = 16;

bool is_time(double us) {
    return std::isfinite(us) && us > 0 && us < kLongestUs;
}

} // namespace

StepTimes::StepTimes(std::vector<int> row_buckets, std::vector<int> block_sizes)
    : buckets_(std::move(row_buckets)),
      blocks_(std::move(block_sizes)),
      tables_(kTables) {
    if (buckets_.empty() || buckets_[0] != 1 || !std::is_sorted(buckets_.begin(), buckets_.end()) || !std::is_sorted(blocks_.begin(), blocks_.end())) {
        throw std::invalid_argument("tuner: row counts and block sizes must ascend, the former from 1");
    }
    if (blocks_.empty()) {
        blocks_ = {1}; // whatever is drafted
    }
    for (Table & table : tables_) {
        table.verify.resize(buckets_.size());
        table.chain.resize(buckets_.size());
        table.draft.resize(blocks_.size());
    }
    tables_[0].is_used = true;
}

size_t StepTimes::bucket_of(int n_rows) const {
    const auto found = std::lower_bound(buckets_.begin(), buckets_.end(), n_rows);
    return found == buckets_.end() ? buckets_.size() - 1 : static_cast<size_t>(found - buckets_.begin());
}

size_t StepTimes::block_of(int block_size) const {
    const auto found = std::lower_bound(blocks_.begin(), blocks_.end(), block_size);
    return found == blocks_.end() ? blocks_.size() - 1 : static_cast<size_t>(found - blocks_.begin());
}

bool StepTimes::set_context(int n_past) {
    size_t wanted = 0;
    while (wanted + 1 < kTables && n_past >= (kFirstTable << wanted)) {
        ++wanted;
    }
    if (wanted == context_) {
        return false;
    }
    const bool is_new = !tables_[wanted].is_used;
    if (is_new) {
        tables_[wanted] = table();
        for (std::vector<Time> * times : {&tables_[wanted].verify, &tables_[wanted].chain, &tables_[wanted].draft}) {
            for (Time & time : *times) {
                time.is_outdated = time.us > 0;
                time.n_samples = 0;
                time.n_slow = 0;
            }
        }
    }
    context_ = wanted;
    bucket_us_.clear();
    return is_new;
}

// ---- learning ---------------------------------------------------------------------------------------------------

void StepTimes::set(Time & time, double us) {
    if (is_time(us)) {
        time = {us, 1, n_steps_, 0, 0, false};
    }
}

void StepTimes::set_verify_us(int n_rows, double us) {
    set(table().verify[bucket_of(n_rows)], us);
}

void StepTimes::set_chain_us(int n_rows, double us) {
    set(table().chain[bucket_of(n_rows)], us);
}

void StepTimes::set_draft_us(int block_size, double us) {
    set(table().draft[block_of(block_size)], us);
}

// The first sample since the context changed takes those along that have had none.
void StepTimes::refresh(Time & time, double us) {
    const double factor = std::clamp(us / time.us, 1 / kLargestDrift, kLargestDrift);
    for (std::vector<Time> * times : {&table().verify, &table().chain, &table().draft}) {
        for (Time & other : *times) {
            if (other.is_outdated) {
                other.us *= factor;
            }
        }
    }
    time = {time.us, 1, n_steps_, 0, 0, false};
}

void StepTimes::learn(Time & time, double us) {
    if (!is_time(us)) {
        return;
    }
    if (time.is_outdated) {
        refresh(time, us);
        return;
    }
    const bool is_stale = n_steps_ - time.step > kStaleSteps;
    const bool is_slow = time.us > 0 && us > kLargestJump * time.us;
    time.slow_us = is_slow ? (time.n_slow > 0 ? std::min(time.slow_us, us) : us) : 0;
    time.n_slow = is_slow ? time.n_slow + 1 : 0;
    if (time.us < 0 || (time.n_samples < kSettled && us < time.us)) {
        time.us = us; // the first samples may hold a warm-up; none is too fast by accident
    } else if (time.n_slow >= kSlowSteps) {
        time.us = time.slow_us; // one slow sample may be anybody's fault; several in a row are the new time
        time.n_slow = 0;
    } else {
        double weight = std::max(kTimeWeight, 1.0 / (time.n_samples + 1));
        weight = is_stale && us < time.us ? std::max(weight, 0.5) : weight;
        time.us += weight * (std::min(us, kLargestJump * time.us) - time.us);
    }
    time.n_samples = std::min(time.n_samples + 1, kMostSamples);
    time.step = n_steps_;
}

// A settled size that drifts (a longer context, a hotter chip) takes the others along, half way: they are measured
// themselves when they are next used.
void StepTimes::learn_verify(int n_rows, double us) {
    const size_t bucket = bucket_of(n_rows);
    Time & time = table().verify[bucket];
    const double before = time.us;
    const bool is_settled = time.n_samples >= 2 * kSettled;
    learn(time, us);
    if (!is_settled || time.us == before) {
        return;
    }
    const double drift = std::pow(time.us / before, kSharedDrift);
    for (size_t other = 0; other < buckets_.size(); ++other) {
        if (other != bucket && table().verify[other].us > 0) {
            table().verify[other].us *= drift;
        }
    }
}

void StepTimes::learn_chain(int n_rows, double us) {
    learn(table().chain[bucket_of(n_rows)], us);
}

void StepTimes::learn_draft(int block_size, double us) {
    learn(table().draft[block_of(block_size)], us);
}

void StepTimes::scale(double factor) {
    bucket_us_.clear();
    for (Table & each : tables_) {
        for (std::vector<Time> * times : {&each.verify, &each.chain, &each.draft}) {
            for (Time & time : *times) {
                time.us *= time.us > 0 ? factor : 1;
            }
        }
    }
}

// ---- answers ----------------------------------------------------------------------------------------------------

// Measured, or a straight line between the measured neighbours.
double StepTimes::raw_us(size_t bucket) const {
    const std::vector<Time> & verify = table().verify;
    if (verify[bucket].us > 0) {
        return verify[bucket].us;
    }
    const auto n_rows = [&](size_t i) { return static_cast<double>(buckets_[i]); };
    std::vector<size_t> below;
    size_t above = bucket;
    for (size_t i = 0; i < buckets_.size(); ++i) {
        if (verify[i].us > 0 && i < bucket) {
            below.push_back(i);
        } else if (verify[i].us > 0 && above == bucket) {
            above = i;
        }
    }
    if (below.empty()) {
        return above == bucket ? 0 : verify[above].us;
    }
    const size_t near = below.back();
    size_t far = above;
    if (above == bucket) {
        if (below.size() < 2) {
            return verify[near].us * std::pow(n_rows(bucket) / n_rows(near), kRowExponent);
        }
        far = below[below.size() - 2];
    }
    const double slope = (verify[far].us - verify[near].us) / (n_rows(far) - n_rows(near));
    return verify[near].us + std::max(slope, 0.0) * (n_rows(bucket) - n_rows(near));
}

// More rows never cost less, and never more than the same rows in several passes of a smaller size. Where measurements
// disagree with that the slower one is taken to be wrong: passes are delayed by accident, never hastened.
double StepTimes::monotone_us(size_t bucket) const {
    double us = raw_us(bucket);
    for (size_t other = 0; other < buckets_.size(); ++other) {
        if (table().verify[other].us > 0) {
            const int n_passes = (buckets_[bucket] + buckets_[other] - 1) / buckets_[other];
            us = std::min(us, table().verify[other].us * n_passes);
        }
    }
    return us;
}

double StepTimes::bucket_us(size_t bucket) const {
    if (bucket_us_.empty()) {
        for (size_t each = 0; each < buckets_.size(); ++each) {
            bucket_us_.push_back(monotone_us(each));
        }
    }
    return bucket_us_[bucket];
}

double StepTimes::least_us(size_t bucket) const {
    const std::vector<Time> & verify = table().verify;
    double least = verify[bucket].us > 0 ? kLargestGain * verify[bucket].us : 0;
    for (size_t smaller = 0; smaller < bucket; ++smaller) {
        least = std::max(least, verify[smaller].us > 0 ? bucket_us(smaller) : 0);
    }
    return std::min(least, bucket_us(bucket));
}

double StepTimes::verify_us(int n_rows) const {
    return bucket_us(bucket_of(n_rows));
}

// Sizes that were not timed are to their trees as the nearest size that was.
double StepTimes::chain_us(int n_rows) const {
    const std::vector<Time> & chain = table().chain;
    const size_t bucket = bucket_of(n_rows);
    const size_t n = chain.size();
    for (size_t distance = 0; distance < n; ++distance) {
        for (const size_t near : {bucket + distance, bucket - distance}) { // beyond 0 it is beyond n too
            if (near > 0 && near < n && chain[near].us > 0 && bucket_us(near) > 0) {
                return std::min(bucket_us(bucket), bucket_us(bucket) * chain[near].us / bucket_us(near));
            }
        }
    }
    return bucket_us(bucket);
}

// A straight line through the two nearest that are known; never less than a smaller block's, nor more than a larger one's.
double StepTimes::draft_us(int block_size) const {
    const std::vector<Time> & draft = table().draft;
    const size_t block = block_of(block_size);
    if (draft[block].us > 0) {
        return draft[block].us;
    }
    std::vector<size_t> known;
    for (size_t i = 0; i < blocks_.size(); ++i) {
        if (draft[i].us > 0) {
            known.push_back(i);
        }
    }
    const auto distance = [&](size_t i) { return std::abs(blocks_[i] - blocks_[block]); };
    std::sort(known.begin(), known.end(), [&](size_t a, size_t b) { return distance(a) < distance(b); });
    if (known.size() < 2) {
        return known.empty() ? 0 : draft[known[0]].us;
    }
    const size_t near = known[0];
    const size_t far = known[1];
    const double slope = std::max((draft[far].us - draft[near].us) / (blocks_[far] - blocks_[near]), 0.0);
    return std::max(draft[near].us + slope * (blocks_[block] - blocks_[near]), 0.1 * draft[near].us);
}

// ---- remembered -------------------------------------------------------------------------------------------------

void StepTimes::write(std::vector<double> & out) const {
    out.insert(out.end(), {static_cast<double>(buckets_.size()), static_cast<double>(blocks_.size())});
    out.insert(out.end(), buckets_.begin(), buckets_.end());
    out.insert(out.end(), blocks_.begin(), blocks_.end());
    for (const Table & each : tables_) {
        out.push_back(each.is_used ? 1 : 0);
        for (const std::vector<Time> * times : {&each.verify, &each.chain, &each.draft}) {
            for (const Time & time : *times) {
                if (each.is_used) {
                    // What was only guessed is not worth remembering.
                    out.push_back(time.is_outdated ? -1 : time.us);
                }
            }
        }
    }
}

bool StepTimes::read(const std::vector<double> & values, size_t & at) {
    NumberReader in(values, at);
    bucket_us_.clear();
    bool is_sound = in.is(static_cast<double>(buckets_.size())) && in.is(static_cast<double>(blocks_.size()));
    for (const std::vector<int> * sizes : {&buckets_, &blocks_}) {
        for (const int size : *sizes) {
            is_sound = is_sound && in.is(size);
        }
    }
    for (Table & each : tables_) {
        is_sound = is_sound && in.take_flag(each.is_used);
        for (std::vector<Time> * times : {&each.verify, &each.chain, &each.draft}) {
            for (Time & time : *times) {
                double us = -1;
                is_sound = is_sound && (!each.is_used || in.take(us, -1, kLongestUs));
                time = {us > 0 ? us : -1, us > 0 ? kSettled : 0, n_steps_, 0, 0, false};
            }
        }
    }
    return is_sound && tables_[0].is_used;
}

} // namespace dflash
