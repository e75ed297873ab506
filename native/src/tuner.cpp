// Long-run throughput is tokens over time; it is highest when every step takes the action with the largest
// tokens - price * time, the price of time being the throughput itself (renewal reward).

#include "tuner.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "tuner_numbers.h"

namespace dflash {
namespace {

constexpr double kFormat = 2; // of remembered numbers

constexpr double kLargestStep = 3; // a slow step counts as at most this many times what was expected
constexpr int kMostSamples = 1000;

// Blocks.
constexpr double kLeadWeight = 0.15;   // of a new draft in what a block is worth
constexpr double kLeadMargin = 0.05;   // tokens that another block must bring more
constexpr double kQualityWeight = 0.02;
constexpr double kQualityPrior = 4;    // drafts
constexpr int kFirstLargestWait = 4;   // drafts until the largest block is drafted again, to compare; twice as many each time
constexpr int kLargestWait = 32;

// Hysteresis: tokens that another size must bring more. A least stay at a size, another cure for flutter, costs several
// percent where easy and hard steps alternate and buys nothing, since all sizes stay built.
constexpr double kSizeMargin = 0.03;
constexpr double kCreditPerToken = 0.005;
constexpr double kMostCredit = 4;

bool is_time(double us) {
    return std::isfinite(us) && us > 0;
}

double probability(float logprob) {
    return std::exp(std::min(static_cast<double>(logprob), 0.0));
}

} // namespace

Tuner::Tuner(std::vector<int> row_buckets, std::vector<int> block_sizes) : times_(std::move(row_buckets), std::move(block_sizes)) {
    blocks_.resize(times_.block_sizes().size());
    block_ = blocks_.size() - 1;
}

void Tuner::begin_reply(const std::vector<int32_t> & prompt) {
    switch_.begin_reply(prompt);
    n_since_largest_ = largest_wait_ = kFirstLargestWait;
}

Tuner::Decision Tuner::decide() {
    return switch_.decide(times_, draft_cost(times_.block_sizes()[block_]));
}

double Tuner::draft_cost(int block_size) const {
    return times_.draft_us(block_size) * plain_price();
}

// ---- blocks -----------------------------------------------------------------------------------------------------

Tuner::Block & Tuner::block(int block_size) {
    return blocks_[times_.block_of(block_size)];
}

Marginals Tuner::calibrate(const Marginals & marginals, int block_size) {
    return block(block_size).calibration.calibrate(marginals);
}

// How often a block's first candidate is right, beside the largest one's.
double Tuner::quality(size_t index) const {
    const double most = blocks_.back().first;
    const double n = blocks_[index].n_samples;
    return most > 0 ? std::clamp((n * blocks_[index].first / most + kQualityPrior) / (n + kQualityPrior), 0.1, 1.1) : 1;
}

int Tuner::choose_block(int most) {
    const std::vector<int> & sizes = times_.block_sizes();
    size_t largest = sizes.size() - 1;
    while (largest > 0 && sizes[largest] > most) {
        --largest;
    }
    return sizes[n_since_largest_ >= largest_wait_ ? largest : std::min(block_, largest)];
}

// A draft of the largest block shows what smaller ones might have brought: the same candidates less far, and less sure.
void Tuner::compare_blocks(const Tree & tree, const Tree * chain) {
    const size_t before = block_;
    for (size_t i = 0; i + 1 < blocks_.size(); ++i) {
        Block & other = blocks_[i];
        const double lead = advantage(tree, chain, times_.block_sizes()[i], quality(i)) - advantage_;
        other.lead += std::max(kLeadWeight, 1.0 / (blocks_.back().n_samples + 1)) * (lead - other.lead);
        if (i != block_ && other.lead > blocks_[block_].lead + kLeadMargin) {
            block_ = i;
        }
    }
    if (blocks_[block_].lead < -kLeadMargin) {
        block_ = blocks_.size() - 1;
    }
    largest_wait_ = block_ == before ? largest_wait_ : kFirstLargestWait;
}

// What a plain step would bring in the time of the best that there is in tree and chain, and in that of the draft.
double Tuner::advantage(const Tree & tree, const Tree * chain, int block_size, double quality) const {
    const double value = plain_price();
    double best = 1 - value * times_.verify_us(1);
    const std::vector<int> & buckets = times_.row_buckets();
    const auto consider = [&](const Tree & rows, bool is_chain) {
        double tokens = 1;
        int n = 1;
        size_t bucket = 1;
        const auto score = [&] {
            const double us = is_chain ? times_.chain_us(n) : times_.verify_us(n);
            best = std::max(best, tokens - value * us);
        };
        for (size_t row = 1; row < static_cast<size_t>(rows.n_rows()) && bucket < buckets.size(); ++row) {
            if (rows.depths[row] >= block_size) {
                continue;
            }
            tokens += quality * probability(rows.path_logprobs[row]);
            ++n;
            if (n == buckets[bucket]) {
                score();
                ++bucket;
            }
        }
        score(); // what is left fills no bucket
    };
    consider(tree, false);
    if (chain != nullptr) {
        consider(*chain, true);
    }
    return best - draft_cost(block_size) - (1 - value * times_.verify_us(1));
}

// ---- size -------------------------------------------------------------------------------------------------------

double Tuner::plain_price() const {
    const double plain_us = times_.verify_us(1);
    return plain_us > 0 ? 1.0 / plain_us : 0;
}

double Tuner::price() const {
    const double drafting = switch_.tokens_per_us();
    return drafting > 0 ? std::max(plain_price(), drafting) : 0;
}

Tuner::Choice Tuner::choose(const Tree & tree, const Tree * chain, int max_rows, int block_size) {
    const std::vector<int> & buckets = times_.row_buckets();
    const int limit = std::max(1, std::min({tree.n_rows(), max_rows, buckets.back()}));
    const double draft_us = times_.draft_us(block_size);
    std::vector<int> rows;      // what each size would verify
    std::vector<double> tokens; // and bring
    double expected = 1;
    int row = 1;
    for (size_t bucket = 0; bucket < buckets.size() && (bucket == 0 || rows.back() < limit); ++bucket) {
        rows.push_back(std::min(buckets[bucket], limit));
        for (; row < rows.back(); ++row) {
            expected += probability(tree.path_logprobs[static_cast<size_t>(row)]);
        }
        tokens.push_back(expected);
    }
    size_t best = std::min(rows.size() - 1, times_.bucket_of(16));
    if (times_.verify_us(1) <= 0) {
        return {rows[best], false, false, tokens[best], 0};
    }
    advantage_ = advantage(tree, chain, block_size, 1);
    first_candidate_ = tree.n_rows() > 1 ? tree.tokens[1] : -1;
    ++n_since_largest_;
    if (block_size >= times_.block_sizes().back()) {
        n_since_largest_ = 0;
        largest_wait_ = std::min(2 * largest_wait_, kLargestWait);
        compare_blocks(tree, chain);
    }
    double value = price();
    if (value <= 0) { // nothing was measured yet: the price at which the best size of this tree just pays
        value = plain_price();
        for (size_t i = 0; i < rows.size(); ++i) {
            value = std::max(value, tokens[i] / (draft_us + times_.verify_us(rows[i])));
        }
    }
    std::vector<double> scores(rows.size());
    for (size_t i = 0; i < rows.size(); ++i) {
        scores[i] = tokens[i] - value * times_.verify_us(rows[i]);
    }
    best = static_cast<size_t>(std::max_element(scores.begin(), scores.end()) - scores.begin());
    const size_t current = std::min(current_, rows.size() - 1);
    if (best != current && scores[best] < scores[current] + kSizeMargin) {
        best = current;
    }
    current_ = best;
    if (chain != nullptr) {
        const double least = scores[best] + (is_chain_ ? -kSizeMargin : kSizeMargin);
        const Choice choice = choose_chain(*chain, std::min({chain->n_rows(), max_rows, buckets.back()}), draft_us, value, least);
        is_chain_ = choice.is_chain;
        if (is_chain_) {
            return choice;
        }
    }
    const size_t chosen = explore(best, scores, tokens[best], value);
    return {rows[chosen], false, chosen != best, tokens[chosen], draft_us + times_.verify_us(rows[chosen])};
}

// The best length of a chain, up to `limit` rows, where its score is above `least`; otherwise no chain.
Tuner::Choice Tuner::choose_chain(const Tree & chain, int limit, double draft_us, double value, double least) const {
    Choice choice;
    double expected = 1;
    for (int n = 2; n <= limit; ++n) {
        expected += probability(chain.path_logprobs[static_cast<size_t>(n - 1)]);
        const double score = expected - value * times_.chain_us(n);
        if (score > least) {
            least = score;
            choice = {n, true, false, expected, draft_us + times_.chain_us(n)};
        }
    }
    return choice;
}

// Now and then a size whose time has not been measured for long, when the loss that is feared has been saved up for.
size_t Tuner::explore(size_t best, const std::vector<double> & scores, double tokens, double value) {
    credit_ = std::min(credit_ + kCreditPerToken * tokens, kMostCredit);
    size_t oldest = best;
    double age = 128;
    for (size_t i = 1; i < scores.size(); ++i) {
        const double here = static_cast<double>(times_.age(i)) * (times_.n_samples(i) == 0 ? 4 : 1);
        // Not where even the shortest time that it could take would not make it the best.
        const double hope = scores[i] + value * (times_.verify_us(times_.row_buckets()[i]) - times_.least_us(i));
        if (i != best && hope > scores[best] && scores[best] - scores[i] <= credit_ && here > age) {
            oldest = i;
            age = here;
        }
    }
    credit_ -= scores[best] - scores[oldest];
    return oldest;
}

// ---- outcomes ---------------------------------------------------------------------------------------------------

void Tuner::observe(const StepOutcome & outcome) {
    times_.tick();
    const bool has_drafted = outcome.block_size > 0;
    if (has_drafted && outcome.is_own && outcome.n_committed > 0) {
        const double expected_draft = times_.draft_us(outcome.block_size);
        const double expected_verify = times_.verify_us(outcome.n_rows);
        const double us = std::min(outcome.draft_us, expected_draft > 0 ? kLargestStep * expected_draft : outcome.draft_us) +
                          std::min(outcome.verify_us, expected_verify > 0 ? kLargestStep * expected_verify : outcome.verify_us);
        switch_.observe_advantage(advantage_, draft_cost(times_.block_sizes().back()));
        if (first_candidate_ >= 0 && outcome.accepted_tokens != nullptr) {
            Block & drafted = block(outcome.block_size);
            drafted.n_samples = std::min(drafted.n_samples + 1, kMostSamples);
            const double hit = (*outcome.accepted_tokens)[0] == first_candidate_ ? 1 : 0;
            drafted.first += std::max(kQualityWeight, 1.0 / drafted.n_samples) * (hit - drafted.first);
        }
        if (is_time(us)) {
            switch_.observe_step(outcome.n_committed, us);
        }
    }
    if (outcome.is_own) {
        switch_.earn(outcome.n_committed);
    }
    if (outcome.is_chain && outcome.n_rows > 1) {
        times_.learn_chain(outcome.n_rows, outcome.verify_us);
    } else {
        times_.learn_verify(outcome.n_rows, outcome.verify_us);
    }
    if (has_drafted) {
        times_.learn_draft(outcome.block_size, outcome.draft_us);
    }
    if (outcome.tree != nullptr && outcome.accepted_rows != nullptr) {
        block(outcome.block_size).calibration.observe({outcome.tree, outcome.n_rows, outcome.accepted_rows, outcome.accepted_tokens});
    }
    for (Block & each : blocks_) {
        each.calibration.forget_origins(); // the next tree may come without calibrate()
    }
}

// ---- remembered -------------------------------------------------------------------------------------------------

std::vector<double> Tuner::remembered() const {
    std::vector<double> out = {kFormat};
    times_.write(out);
    for (const Block & each : blocks_) {
        each.calibration.write(out);
        out.insert(out.end(), {each.first, static_cast<double>(each.n_samples), each.lead});
    }
    out.insert(out.end(), {static_cast<double>(block_), switch_.is_on() ? 1.0 : 0.0, measured_speed_up()});
    return out;
}

bool Tuner::remember(const std::vector<double> & values) {
    Tuner other(times_.row_buckets(), times_.block_sizes());
    size_t at = 0;
    NumberReader in(values, at);
    bool is_sound = in.is(kFormat) && other.times_.read(values, at);
    for (Block & each : other.blocks_) {
        is_sound = is_sound && each.calibration.read(values, at) && in.take(each.first, 0, 1) && in.take(each.n_samples, 0, kMostSamples) &&
                   in.take(each.lead, -1e3, 1e3);
    }
    int block = 0;
    bool is_on = true;
    double speed_up = 0;
    is_sound = is_sound && in.take(block, 0, static_cast<int>(blocks_.size()) - 1) && in.take_flag(is_on) && in.take(speed_up, 0, 1e3);
    if (!is_sound || at != values.size()) {
        return false;
    }
    other.block_ = static_cast<size_t>(block);
    other.switch_.remember(is_on, speed_up);
    *this = std::move(other);
    return true;
}

void Tuner::forget_device() {
    times_ = StepTimes(times_.row_buckets(), times_.block_sizes());
    switch_ = DraftSwitch();
}

} // namespace dflash
