// Filters keep the tokens up to a cutoff in the order "larger logit first, lower id on a tie"; the draw then runs over
// the kept ones in order of id. So a row costs a few passes and no sort, and a last-bit difference between two logits
// does not reshuffle the draw.

#include "sampler.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>

#include "token_weights.h"

namespace dflash {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr int kDefaultWindow = 256;
constexpr uint64_t kSecondDraw = 0x5851f42d4c957f2dull; // makes of a seed another one, whose draws are independent
constexpr float kLowestTemperature = 1e-6f; // below it only exact ties of the maximum share the draw

float largest_or_throw(const float * logits, int n_vocab) {
    const float best = largest(logits, n_vocab);
    if (best == -kInfinity) {
        throw std::runtime_error("the target's logits are not numbers; no token can be chosen");
    }
    return best;
}

// splitmix64's finaliser (Steele, Lea and Flood 2014; constants of Stafford's variant 13).
uint64_t mix(uint64_t z) {
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
    return z ^ (z >> 31);
}

} // namespace

Sampler::Sampler(const SamplerParams & params, int n_vocab) : params_(params), n_vocab_(n_vocab) {
    if (n_vocab <= 0) {
        throw std::invalid_argument("sampler: the vocabulary is empty");
    }
    if (params_.penalty_window == 0) {
        params_.penalty_window = kDefaultWindow;
    }
    if (!(params_.repeat_penalty > 0)) {
        params_.repeat_penalty = 1;
    }
    if (!(params_.top_p > 0)) {
        params_.top_p = 1;
    }
}

void Sampler::begin(const std::vector<int32_t> & history) {
    history_ = history;
    n_reply_ = 0;
    counts_.clear();
    for (size_t i = window_begin(history_.size()); i < history_.size(); ++i) {
        count(history_[i], 1);
    }
}

void Sampler::commit(const std::vector<int32_t> & tokens) {
    move_window(tokens, 1);
    history_.insert(history_.end(), tokens.begin(), tokens.end());
    n_reply_ += tokens.size();
}

size_t Sampler::window_begin(size_t n_tokens) const {
    const auto window = static_cast<size_t>(std::max(params_.penalty_window, 0));
    return params_.penalty_window < 0 || n_tokens <= window ? 0 : n_tokens - window;
}

void Sampler::count(int32_t token, int n) const {
    if (token < 0 || token >= n_vocab_ || !params_.has_penalties()) {
        return;
    }
    const auto found = counts_.emplace(token, 0).first;
    found->second += n;
    if (found->second == 0) {
        counts_.erase(found);
    }
}

// Let the window of the penalties take in `path` after the history (sign 1), or give it back (sign -1).
void Sampler::move_window(const std::vector<int32_t> & path, int sign) const {
    const size_t n_all = history_.size() + path.size();
    for (size_t i = window_begin(history_.size()); i < window_begin(n_all); ++i) {
        count(i < history_.size() ? history_[i] : path[i - history_.size()], -sign);
    }
    for (const int32_t token : path) {
        count(token, sign);
    }
}

// The logits with the penalties applied to every token of the window.
const float * Sampler::penalize(const float * logits, const std::vector<int32_t> & path) const {
    scratch_.assign(logits, logits + n_vocab_);
    move_window(path, 1);
    for (const auto & [token, n] : counts_) {
        float & logit = scratch_[static_cast<size_t>(token)];
        logit = logit > 0 ? logit / params_.repeat_penalty : logit * params_.repeat_penalty;
        logit -= static_cast<float>(n) * params_.frequency_penalty + params_.presence_penalty;
    }
    move_window(path, -1);
    return scratch_.data();
}

int32_t Sampler::choose(const float * logits, const std::vector<int32_t> & path) const {
    if (params_.has_penalties()) {
        logits = penalize(logits, path);
    }
    return pick(logits, params_.is_greedy() ? 0.0 : uniform_draw(params_.seed, n_reply_ + path.size()));
}

int32_t Sampler::choose_allowed(const float * logits, const std::vector<int32_t> & path, const uint32_t * allowed, int n_words) const {
    if (params_.has_penalties()) {
        logits = penalize(logits, path);
    }
    allowed_logits_.assign(static_cast<size_t>(n_vocab_), -kInfinity);
    for (int id = 0; id < std::min<int64_t>(n_vocab_, int64_t{32} * n_words); ++id) {
        if (allowed[id / 32] >> (id % 32) & 1u) {
            allowed_logits_[static_cast<size_t>(id)] = logits[id];
        }
    }
    return pick(allowed_logits_.data(), params_.is_greedy() ? 0.0 : uniform_draw(params_.seed ^ kSecondDraw, n_reply_ + path.size()));
}

// `u` decides; a greedy choice does not look at it.
int32_t Sampler::pick(const float * logits, double u) const {
    const float best = largest_or_throw(logits, n_vocab_);
    if (params_.is_greedy() || best == kInfinity) {
        return first_equal(logits, n_vocab_, best);
    }
    const TokenWeights weights{logits, n_vocab_, best, 1.0f / std::max(kLowestTemperature, params_.temperature)};
    const bool has_top_k = params_.top_k > 0 && params_.top_k < n_vocab_;
    if (!has_top_k && params_.top_p >= 1 && params_.min_p <= 0) {
        return draw_from_all(weights, u, block_sums_);
    }

    const float least = params_.min_p > 0 ? std::min(params_.min_p, 1.0f) : 0.0f;
    if (has_top_k) {
        keep_best(logits, n_vocab_, params_.top_k, order_);
    }
    if (params_.top_p < 1) {
        if (has_top_k) {
            keep_mass(weights, static_cast<double>(params_.top_p) * weights.sum(order_), order_);
        } else {
            const double goal = static_cast<double>(params_.top_p) * sum_all(weights, block_sums_);
            gather_mass(weights, goal, order_);
            keep_mass(weights, goal, order_);
        }
    } else if (!has_top_k) {
        gather(weights, least, order_);
    }
    if (least > 0) {
        drop_light(weights, least, order_);
    }
    sort_ids(weights, order_);
    return draw(weights, u * weights.sum(order_), order_.data(), order_.size());
}

double log_probability(const float * logits, int n_vocab, int32_t token) {
    const float best = largest(logits, n_vocab);
    if (token < 0 || token >= n_vocab || std::isnan(logits[token]) || best == -kInfinity) {
        return -std::numeric_limits<double>::infinity();
    }
    double sum = 0;
    for (int i = 0; i < n_vocab; ++i) {
        if (best == kInfinity) {
            sum += logits[i] == kInfinity ? 1.0 : 0.0;
        } else if (logits[i] - best > -60.0f) { // what is further away is lost in the sum's rounding
            sum += std::exp(static_cast<double>(logits[i]) - static_cast<double>(best));
        }
    }
    const double above = logits[token] == best ? 0.0 : static_cast<double>(logits[token]) - static_cast<double>(best);
    return above - std::log(sum);
}

double uniform_draw(uint64_t seed, uint64_t index) {
    const uint64_t key = mix(seed + 0x9e3779b97f4a7c15ull);
    return static_cast<double>(mix(key + (index + 1) * 0x9e3779b97f4a7c15ull) >> 11) * 0x1.0p-53;
}

} // namespace dflash
