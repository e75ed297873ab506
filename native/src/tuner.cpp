// Long-run throughput is tokens over time; it is highest when every step takes the action with the largest
// tokens - price * time, the price of time being the throughput itself (renewal reward).

#include "tuner.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <stdexcept>
#include <utility>

namespace dflash {
namespace {

// Calibration: memory of about 50 steps; a factor stays near 1 until about this many tests were made.
constexpr double kCalibrationDecay = 0.98;
constexpr double kCalibrationPrior = 4;

constexpr double kTimeWeight = 0.1;  // of a new sample, once there are some
constexpr double kLargestJump = 1.3; // a sample counts as at most this many times what was expected
constexpr double kLargestStep = 3;   // the same for a step's part in the throughput, where slow steps do count
constexpr int kSettled = 4;          // samples after which a time is believed
constexpr int kSlowSteps = 3;
constexpr int64_t kStaleSteps = 64;
constexpr double kSharedDrift = 0.5; // how much of a change of one size is taken to be true of all
constexpr double kRowExponent = 0.4; // guess for sizes while only one is known: t grows with rows to this power

constexpr int kProbeSteps = 4;
constexpr int kFirstProbeWait = 32;
constexpr int kLastProbeWait = 512;
constexpr int kLeastEvidence = 8;   // speculative steps before drafting may be switched off
constexpr double kOnMargin = 0.03;  // a probe must win by this much
constexpr double kProbeLoss = 0.005; // share of the time that probing may cost

// Hysteresis: tokens that another size must bring more. A least stay, which the notes propose beside it, costs several
// percent where easy and hard steps alternate and buys nothing, since all sizes stay built.
constexpr double kSizeMargin = 0.03;
constexpr double kCreditPerToken = 0.005;
constexpr double kMostCredit = 4;

int rank_class_of(int rank) {
    return rank == 0 ? 0 : rank < 3 ? 1 : 2;
}

bool is_time(double us) {
    return std::isfinite(us) && us > 0;
}

} // namespace

// ---- times ------------------------------------------------------------------------------------------------------

Tuner::Tuner(std::vector<int> row_buckets) : buckets_(std::move(row_buckets)), verify_(buckets_.size()), chain_(buckets_.size()) {
    if (buckets_.empty() || buckets_[0] != 1 || !std::is_sorted(buckets_.begin(), buckets_.end())) {
        throw std::invalid_argument("tuner: the row counts must ascend from 1");
    }
    rates_[0].decay = 0.95;
    rates_[1].decay = 0.9875;
    rates_[2].decay = 0.998;
    probe_wait_ = kFirstProbeWait;
}

size_t Tuner::bucket_of(int n_rows) const {
    const auto found = std::lower_bound(buckets_.begin(), buckets_.end(), n_rows);
    return found == buckets_.end() ? buckets_.size() - 1 : static_cast<size_t>(found - buckets_.begin());
}

void Tuner::learn(Time & time, double us) const {
    if (!is_time(us)) {
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
    time.n_samples = std::min(time.n_samples + 1, 1000);
    time.step = n_steps_;
}

// A settled size that drifts (a longer context, a hotter chip) takes the others along, half way: they are measured
// themselves when they are next used.
void Tuner::learn_verify(size_t bucket, double us) {
    Time & time = verify_[bucket];
    const double before = time.us;
    const bool is_settled = time.n_samples >= 2 * kSettled;
    learn(time, us);
    if (!is_settled || time.us == before) {
        return;
    }
    const double drift = std::pow(time.us / before, kSharedDrift);
    for (size_t other = 0; other < verify_.size(); ++other) {
        if (other != bucket && verify_[other].us > 0) {
            verify_[other].us *= drift;
        }
    }
}

void Tuner::set_verify_us(int n_rows, double us) {
    if (is_time(us)) {
        verify_[bucket_of(n_rows)] = {us, 1, n_steps_, 0, 0};
    }
}

void Tuner::set_draft_us(double us) {
    if (is_time(us)) {
        draft_ = {us, 1, n_steps_, 0, 0};
    }
}

// Measured, or a straight line between the measured neighbours.
double Tuner::raw_us(size_t bucket) const {
    if (verify_[bucket].us > 0) {
        return verify_[bucket].us;
    }
    const auto is_known = [&](size_t i) { return verify_[i].us > 0; };
    const auto n_rows = [&](size_t i) { return static_cast<double>(buckets_[i]); };
    std::vector<size_t> below;
    size_t above = bucket;
    for (size_t i = 0; i < buckets_.size(); ++i) {
        if (is_known(i) && i < bucket) {
            below.push_back(i);
        } else if (is_known(i) && above == bucket) {
            above = i;
        }
    }
    if (below.empty()) {
        return above == bucket ? 0 : verify_[above].us;
    }
    const size_t near = below.back();
    size_t far = above;
    if (above == bucket) {
        if (below.size() < 2) {
            return verify_[near].us * std::pow(n_rows(bucket) / n_rows(near), kRowExponent);
        }
        far = below[below.size() - 2];
    }
    const double slope = (verify_[far].us - verify_[near].us) / (n_rows(far) - n_rows(near));
    return verify_[near].us + std::max(slope, 0.0) * (n_rows(bucket) - n_rows(near));
}

// More rows never cost less, and never more than the same rows in several passes of a smaller size. Where measurements
// disagree with that the slower one is taken to be wrong: passes are delayed by accident, never hastened.
double Tuner::bucket_us(size_t bucket) const {
    double us = raw_us(bucket);
    for (size_t other = 0; other < buckets_.size(); ++other) {
        if (verify_[other].us > 0) {
            const int n_passes = (buckets_[bucket] + buckets_[other] - 1) / buckets_[other];
            us = std::min(us, verify_[other].us * n_passes);
        }
    }
    return us;
}

double Tuner::verify_us(int n_rows) const {
    return bucket_us(bucket_of(n_rows));
}

double Tuner::draft_us() const {
    return std::max(draft_.us, 0.0);
}

void Tuner::set_chain_us(int n_rows, double us) {
    if (is_time(us)) {
        chain_[bucket_of(n_rows)] = {us, 1, n_steps_, 0, 0};
    }
}

// Sizes that were not timed are to their trees as the nearest size that was.
double Tuner::chain_us(int n_rows) const {
    const size_t bucket = bucket_of(n_rows);
    const size_t n = chain_.size();
    for (size_t distance = 0; distance < n; ++distance) {
        for (const size_t near : {bucket + distance, bucket - distance}) { // beyond 0 it is beyond n too
            if (near > 0 && near < n && chain_[near].us > 0 && bucket_us(near) > 0) {
                return std::min(bucket_us(bucket), bucket_us(bucket) * chain_[near].us / bucket_us(near));
            }
        }
    }
    return bucket_us(bucket);
}

// ---- on or off --------------------------------------------------------------------------------------------------

void Tuner::Rate::add(double n_tokens, double n_us) {
    tokens = decay * tokens + n_tokens;
    token_squares = decay * token_squares + n_tokens * n_tokens;
    us = decay * us + n_us;
    weight = decay * weight + 1;
    weight_squares = decay * decay * weight_squares + 1;
}

void Tuner::Rate::scale(double factor) {
    tokens *= factor;
    token_squares *= factor;
    us *= factor;
    weight *= factor;
    weight_squares *= factor; // the evidence shrinks with its weight
}

double Tuner::Rate::n_steps() const {
    return weight_squares > 0 ? weight * weight / weight_squares : 0;
}

// Speculative over plain throughput, `n_errors` standard errors above the estimate; 0 when unknown.
double Tuner::speedup(const Rate & rate, double n_errors) const {
    const double plain_us = bucket_us(0);
    if (rate.us <= 0 || plain_us <= 0) {
        return 0;
    }
    const double mean = rate.tokens / rate.weight;
    const double squares = std::max(rate.token_squares / rate.weight - mean * mean, 0.0);
    const double n = rate.n_steps();
    const double variance = (n * squares + 1.0) / (n + 1.0); // one step's worth of prior, against luck
    const double tokens = mean + n_errors * std::sqrt(variance / std::max(n, 1.0));
    return tokens * plain_us / (rate.us / rate.weight);
}

bool Tuner::is_losing() const {
    if (n_spec_since_on_ < kLeastEvidence) {
        return false;
    }
    return speedup(rates_[0], 2.0) < 1.0 || speedup(rates_[1], 1.5) < 1.0 || speedup(rates_[2], 1.0) < 1.0;
}

double Tuner::measured_speedup() const {
    return speedup(rates_[1], 0);
}

// The price of plain steps that keep its time known: what speculation would have gained. Rare where it gains much.
bool Tuner::should_refresh_plain() const {
    const double gain = std::max(speedup(rates_[1], 0) - 1.0, 0.0);
    const double wait = verify_[0].n_samples < kSettled ? 8 : std::clamp(gain / (1.0 + gain) / 0.005, 24.0, 512.0);
    return static_cast<double>(n_steps_ - verify_[0].step) >= wait;
}

Tuner::Decision Tuner::decide() {
    if (verify_[0].us < 0) {
        return Decision::kPlain;
    }
    if (!is_on_) {
        return decide_while_off();
    }
    if (is_losing()) {
        is_on_ = false;
        n_plain_since_probe_ = 0;
        n_probe_left_ = 0;
        probe_wait_ = has_proven_ ? kFirstProbeWait : std::min(2 * probe_wait_, kLastProbeWait);
        return Decision::kPlain;
    }
    has_proven_ = has_proven_ || (n_spec_since_on_ >= 64 && speedup(rates_[1], -1.0) > 1.0);
    return should_refresh_plain() ? Decision::kPlain : Decision::kDraft;
}

Tuner::Decision Tuner::decide_while_off() {
    if (n_probe_left_ > 0) {
        --n_probe_left_;
        if (n_probe_left_ > 0) {
            return Decision::kProbe;
        }
        if (speedup(rates_[0], 0) > 1.0 + kOnMargin) {
            // Text has changed: only the probe speaks for it.
            is_on_ = true;
            has_proven_ = false;
            n_spec_since_on_ = 0;
            for (size_t i = 1; i < rates_.size(); ++i) {
                const double decay = rates_[i].decay;
                rates_[i] = rates_[0];
                rates_[i].decay = decay;
            }
            return Decision::kDraft;
        }
        const double loss = kProbeSteps * (1.0 / std::max(speedup(rates_[1], 0), 0.1) - 1.0);
        const int wait = static_cast<int>(std::clamp(loss / kProbeLoss, 1.0 * kFirstProbeWait, 1.0 * kLastProbeWait));
        probe_wait_ = std::min(2 * probe_wait_, wait);
        n_plain_since_probe_ = 0;
        return Decision::kPlain;
    }
    if (++n_plain_since_probe_ < probe_wait_) {
        return Decision::kPlain;
    }
    n_probe_left_ = kProbeSteps;
    rates_[0].scale(std::min(1.0, 2.0 / std::max(rates_[0].weight, 1e-9))); // two old steps against the four to come
    return Decision::kProbe;
}

// ---- calibration ------------------------------------------------------------------------------------------------

// What has come true over what was promised. Without evidence the factor is that of the same class at all depths, and
// without any at all it is 1.
double Tuner::factor(int depth, int rank_class) const {
    const auto d = static_cast<size_t>(std::clamp(depth, 0, kDepths - 1));
    const auto c = static_cast<size_t>(rank_class);
    double hits = kCalibrationPrior;
    double expected = kCalibrationPrior;
    for (size_t other = 0; other < expected_.size(); ++other) {
        hits += hits_[other][c];
        expected += expected_[other][c];
    }
    return (hits_[d][c] + kCalibrationPrior * hits / expected) / (expected_[d][c] + kCalibrationPrior);
}

// Rank class of each of `k` candidates by its log-probability.
std::vector<int> Tuner::rank_classes(const float * logprobs, size_t k) {
    std::vector<size_t> order(k);
    std::iota(order.begin(), order.end(), size_t{0});
    std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return logprobs[a] > logprobs[b]; });
    std::vector<int> classes(k);
    for (size_t rank = 0; rank < k; ++rank) {
        classes[order[rank]] = rank_class_of(static_cast<int>(rank));
    }
    return classes;
}

// The same for each row of a conditional table. Candidates keep their places: the rows below refer to them.
void Tuner::calibrate_conditional(Marginals & marginals) const {
    const auto k = static_cast<size_t>(marginals.k);
    std::vector<double> probabilities(k);
    for (int depth = 0; depth < marginals.n_depths; ++depth) {
        std::array<double, kClasses> factors{};
        for (int c = 0; c < kClasses; ++c) {
            factors[static_cast<size_t>(c)] = factor(depth, c);
        }
        for (size_t before = 0; before < (depth == 0 ? 1 : k); ++before) {
            float * row = &marginals.conditional[(static_cast<size_t>(depth) * k + before) * k];
            const std::vector<int> classes = rank_classes(row, k);
            double sum = 0;
            for (size_t i = 0; i < k; ++i) {
                probabilities[i] = std::exp(static_cast<double>(row[i])) * factors[static_cast<size_t>(classes[i])];
                sum += probabilities[i];
            }
            for (size_t i = 0; i < k; ++i) {
                row[i] = static_cast<float>(std::log(probabilities[i] / std::max(sum, 1.0)));
            }
        }
    }
}

// What the draft itself said of the children of a row, candidate by candidate; nullptr unless it was asked of a conditional
// draft and the row is one of its candidates.
const float * Tuner::conditional_row(const Tree & tree, size_t row) const {
    const auto k = static_cast<size_t>(std::max(conditional_origin_.k, 0));
    const auto depth = static_cast<size_t>(tree.depths[row]);
    if (conditional_origin_.conditional.empty() || depth >= static_cast<size_t>(conditional_origin_.n_depths)) {
        return nullptr;
    }
    size_t before = 0; // the root has row 0 to itself
    if (depth > 0) {
        const auto begin = conditional_origin_.ids.begin() + static_cast<ptrdiff_t>((depth - 1) * k);
        before = static_cast<size_t>(std::find(begin, begin + conditional_origin_.k, tree.tokens[row]) - begin);
    }
    return before < k ? &conditional_origin_.conditional[(depth * k + before) * k] : nullptr;
}

Marginals Tuner::calibrate(const Marginals & marginals) const {
    Marginals calibrated = marginals;
    if (!marginals.conditional.empty()) {
        conditional_origin_ = marginals;
        calibrate_conditional(calibrated);
        return calibrated;
    }
    const auto k = static_cast<size_t>(std::max(marginals.k, 0));
    n_origin_ranks_ = static_cast<int>(k);
    origins_.assign(calibrated.ids.size(), Origin{});
    std::vector<std::pair<double, size_t>> row(k);
    for (int depth = 0; depth < marginals.n_depths; ++depth) {
        const size_t begin = static_cast<size_t>(depth) * k;
        double sum = 0;
        for (size_t rank = 0; rank < k; ++rank) {
            const double p = std::exp(static_cast<double>(marginals.logprobs[begin + rank]));
            row[rank] = {p * factor(depth, rank_class_of(static_cast<int>(rank))), rank};
            sum += row[rank].first;
        }
        std::stable_sort(row.begin(), row.end(), [](const auto & a, const auto & b) { return a.first > b.first; });
        for (size_t rank = 0; rank < k; ++rank) {
            const size_t from = begin + row[rank].second;
            calibrated.ids[begin + rank] = marginals.ids[from];
            calibrated.logprobs[begin + rank] = static_cast<float>(std::log(row[rank].first / std::max(sum, 1.0)));
            origins_[begin + rank] = {marginals.ids[from], rank_class_of(static_cast<int>(row[rank].second)),
                                      std::exp(static_cast<double>(marginals.logprobs[from]))};
        }
    }
    return calibrated;
}

void Tuner::book(int depth, int rank_class, double probability, bool is_hit) {
    const auto d = static_cast<size_t>(std::clamp(depth, 0, kDepths - 1));
    expected_[d][static_cast<size_t>(rank_class)] += std::min(probability, 1.0);
    hits_[d][static_cast<size_t>(rank_class)] += is_hit ? 1.0 : 0.0;
}

// After each accepted row the target said its own token, which puts every candidate of that depth to the test, verified
// or not. So the sums are conditional on the parent: deep rows are not judged by how rarely they are reached, nor wide
// ones by how rarely they are verified.
void Tuner::observe_acceptance(const StepOutcome & outcome) {
    for (size_t d = 0; d < expected_.size(); ++d) {
        for (size_t c = 0; c < kClasses; ++c) {
            expected_[d][c] *= kCalibrationDecay;
            hits_[d][c] *= kCalibrationDecay;
        }
    }
    const Tree & tree = *outcome.tree;
    const std::vector<int32_t> & rows = *outcome.accepted_rows;
    const auto k = static_cast<size_t>(n_origin_ranks_);
    for (size_t i = 0; i < rows.size(); ++i) {
        if (rows[i] < 0 || rows[i] >= tree.n_rows()) {
            continue;
        }
        const auto depth = static_cast<size_t>(tree.depths[static_cast<size_t>(rows[i])]);
        const bool is_last = i + 1 == rows.size();
        const bool is_said = outcome.accepted_tokens != nullptr && i < outcome.accepted_tokens->size();
        if (k > 0 && (depth + 1) * k <= origins_.size() && (is_said || !is_last)) {
            const int32_t token = is_said ? (*outcome.accepted_tokens)[i] : tree.tokens[static_cast<size_t>(rows[i + 1])];
            for (size_t at = depth * k; at < (depth + 1) * k; ++at) {
                const Origin & origin = origins_[at];
                book(static_cast<int>(depth), origin.rank_class, origin.probability, origin.token == token);
            }
            continue;
        }
        const float * said = conditional_row(tree, static_cast<size_t>(rows[i]));
        if (said != nullptr && (is_said || !is_last)) {
            const int32_t token = is_said ? (*outcome.accepted_tokens)[i] : tree.tokens[static_cast<size_t>(rows[i + 1])];
            const auto n = static_cast<size_t>(conditional_origin_.k);
            const std::vector<int> classes = rank_classes(said, n);
            for (size_t c = 0; c < n; ++c) {
                book(static_cast<int>(depth), classes[c], std::exp(static_cast<double>(said[c])), conditional_origin_.ids[depth * n + c] == token);
            }
            continue;
        }
        // The token is not known: then only the verified children were tested.
        for (int row = rows[i] + 1; row < std::min(tree.n_rows(), outcome.n_rows); ++row) {
            const auto child = static_cast<size_t>(row);
            if (tree.parents[child] != rows[i]) {
                continue;
            }
            const float path = tree.path_logprobs[child] - tree.path_logprobs[static_cast<size_t>(rows[i])];
            const size_t at = depth * k + static_cast<size_t>(tree.ranks[child]);
            const bool is_known = at < origins_.size() && origins_[at].token == tree.tokens[child];
            book(static_cast<int>(depth), is_known ? origins_[at].rank_class : rank_class_of(tree.ranks[child]),
                 is_known ? origins_[at].probability : std::exp(static_cast<double>(path)), !is_last && rows[i + 1] == row);
        }
    }
}

// ---- size -------------------------------------------------------------------------------------------------------

double Tuner::price() const {
    const double plain_us = bucket_us(0);
    const double plain = plain_us > 0 ? 1.0 / plain_us : 0;
    const Rate & rate = rates_[1];
    return rate.us > 0 ? std::max(plain, rate.tokens / rate.us) : 0;
}

int Tuner::choose_rows(const Tree & tree, int max_rows, float * expected_committed, const Tree * chain, bool * is_chain) {
    const int limit = std::max(1, std::min({tree.n_rows(), max_rows, buckets_.back()}));
    std::vector<int> rows;        // what each size would verify
    std::vector<double> tokens;   // and bring
    double expected = 1;
    int row = 1;
    for (size_t bucket = 0; bucket < buckets_.size() && (bucket == 0 || rows.back() < limit); ++bucket) {
        rows.push_back(std::min(buckets_[bucket], limit));
        for (; row < rows.back(); ++row) {
            expected += std::exp(std::min(static_cast<double>(tree.path_logprobs[static_cast<size_t>(row)]), 0.0));
        }
        tokens.push_back(expected);
    }
    std::vector<double> us(rows.size());
    for (size_t i = 0; i < us.size(); ++i) {
        us[i] = bucket_us(i);
    }
    size_t best = std::min(rows.size() - 1, bucket_of(16));
    if (us[0] > 0) {
        double value = price();
        if (value <= 0) { // nothing was measured yet: the price at which the best size of this tree just pays
            for (size_t i = 0; i < rows.size(); ++i) {
                value = std::max(value, tokens[i] / (draft_us() + us[i]));
            }
        }
        std::vector<double> scores(rows.size());
        for (size_t i = 0; i < rows.size(); ++i) {
            scores[i] = tokens[i] - value * us[i];
        }
        best = static_cast<size_t>(std::max_element(scores.begin(), scores.end()) - scores.begin());
        const size_t current = std::min(current_, rows.size() - 1);
        if (best != current && scores[best] < scores[current] + kSizeMargin) {
            best = current;
        }
        current_ = best;
        if (chain != nullptr && is_chain != nullptr) {
            double sum = 1;
            double highest = scores[best] + (is_chain_ ? -kSizeMargin : kSizeMargin);
            int n_chain = 0;
            for (int n = 2; n <= std::min({chain->n_rows(), max_rows, buckets_.back()}); ++n) {
                sum += std::exp(std::min(static_cast<double>(chain->path_logprobs[static_cast<size_t>(n - 1)]), 0.0));
                if (sum - value * chain_us(n) > highest) {
                    highest = sum - value * chain_us(n);
                    n_chain = n;
                    expected = sum;
                }
            }
            is_chain_ = n_chain > 0;
            *is_chain = is_chain_;
            if (is_chain_) {
                if (expected_committed != nullptr) {
                    *expected_committed = static_cast<float>(expected);
                }
                return n_chain;
            }
        }
        best = explore(best, scores, tokens[best]);
    }
    if (expected_committed != nullptr) {
        *expected_committed = static_cast<float>(tokens[best]);
    }
    return rows[best];
}

// Now and then a size whose time has not been measured for long, when the loss that is feared has been saved up for.
size_t Tuner::explore(size_t best, const std::vector<double> & scores, double tokens) {
    credit_ = std::min(credit_ + kCreditPerToken * tokens, kMostCredit);
    size_t oldest = best;
    double age = 128;
    for (size_t i = 1; i < scores.size(); ++i) {
        const double here = static_cast<double>(n_steps_ - verify_[i].step) * (verify_[i].n_samples == 0 ? 4 : 1);
        if (i != best && scores[best] - scores[i] <= credit_ && here > age) {
            oldest = i;
            age = here;
        }
    }
    credit_ -= scores[best] - scores[oldest];
    return oldest;
}

// ---- outcomes ---------------------------------------------------------------------------------------------------

void Tuner::observe(const StepOutcome & outcome) {
    ++n_steps_;
    const size_t bucket = bucket_of(outcome.n_rows);
    if (outcome.has_drafted && outcome.n_committed > 0) {
        const double draft_limit = draft_.us > 0 ? kLargestStep * draft_.us : outcome.draft_us;
        const double verify_limit = bucket_us(bucket) > 0 ? kLargestStep * bucket_us(bucket) : outcome.verify_us;
        const double us = std::min(outcome.draft_us, draft_limit) + std::min(outcome.verify_us, verify_limit);
        if (is_time(us)) {
            for (Rate & rate : rates_) {
                rate.add(outcome.n_committed, us);
            }
            ++n_spec_since_on_;
        }
    }
    if (outcome.is_chain && bucket > 0) {
        learn(chain_[bucket], outcome.verify_us);
    } else {
        learn_verify(bucket, outcome.verify_us);
    }
    if (outcome.has_drafted) {
        learn(draft_, outcome.draft_us);
    }
    if (outcome.tree != nullptr && outcome.accepted_rows != nullptr) {
        observe_acceptance(outcome);
    }
    origins_.clear(); // the next tree may come without calibrate()
    conditional_origin_ = {};
}

} // namespace dflash
