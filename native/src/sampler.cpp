// Filters keep the tokens up to a cutoff in the order "larger logit first, lower id on a tie"; the draw then runs over
// the kept ones in order of id. So a row costs a few passes and no sort, and a last-bit difference between two logits
// does not reshuffle the draw.

#include "sampler.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <limits>
#include <stdexcept>

namespace dflash {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr int kDefaultWindow = 256;
constexpr uint64_t kSecondDraw = 0x5851f42d4c957f2dull; // makes of a seed another one, whose draws are independent
constexpr float kLowestTemperature = 1e-6f; // below it only exact ties of the maximum share the draw
constexpr int kBlock = 256;                 // weights summed in float before they join a double

constexpr float kLowestExponent = -88.0f;

// Also what NaN becomes.
inline float bounded_exponent(float x) {
    return x > kLowestExponent ? x : kLowestExponent;
}

// e^x for -88 <= x <= 0, within 2e-7 of its value; 0 at -88. Loops over it vectorise as long as the bounding is a loop of
// its own: otherwise compilers make a branch of it.
inline float exp_of_bounded(float x) {
    const auto n = static_cast<int32_t>(x * 1.44269504f - 0.5f); // -127 at -88: a power of two of 0
    const auto n_real = static_cast<float>(n);
    const float f = (x - n_real * 0.693145752f) - n_real * 1.42860677e-6f; // ln 2 in two parts
    float y = 1.0f / 5040.0f;
    y = y * f + 1.0f / 720.0f;
    y = y * f + 1.0f / 120.0f;
    y = y * f + 1.0f / 24.0f;
    y = y * f + 1.0f / 6.0f;
    y = y * f + 0.5f;
    y = y * f + 1.0f;
    y = y * f + 1.0f;
    const uint32_t bits = static_cast<uint32_t>(n + 127) << 23;
    float power;
    std::memcpy(&power, &bits, sizeof(power));
    return y * power;
}

// The largest number of a row, NaN left out; -inf when there is none.
float largest(const float * x, int n) {
    float lanes[16];
    std::fill_n(lanes, 16, -kInfinity);
    int i = 0;
    for (; i + 16 <= n; i += 16) {
        for (int k = 0; k < 16; ++k) {
            lanes[k] = x[i + k] > lanes[k] ? x[i + k] : lanes[k];
        }
    }
    float best = -kInfinity;
    for (const float lane : lanes) {
        best = lane > best ? lane : best;
    }
    for (; i < n; ++i) {
        best = x[i] > best ? x[i] : best;
    }
    return best;
}

int32_t first_equal(const float * x, int n, float value) {
    for (int i = 0; i < n; ++i) {
        if (x[i] == value) {
            return i;
        }
    }
    return n - 1;
}

float largest_or_throw(const float * logits, int n_vocab) {
    const float best = largest(logits, n_vocab);
    if (best == -kInfinity) {
        throw std::runtime_error("the target's logits are not numbers; no token can be chosen");
    }
    return best;
}

struct IsBetter {
    const float * logits;
    bool operator()(int32_t a, int32_t b) const { return logits[a] != logits[b] ? logits[a] > logits[b] : a < b; }
};

// The k best tokens in no particular order; fewer when fewer are numbers.
void keep_best(const float * logits, int n_vocab, int k, std::vector<int32_t> & ids) {
    const auto n_kept = static_cast<size_t>(k);
    const size_t n_room = n_kept + std::max<size_t>(n_kept, 256);
    const IsBetter is_better{logits};
    float threshold = -kInfinity;
    const auto shrink = [&] {
        const auto last = ids.begin() + static_cast<std::ptrdiff_t>(n_kept) - 1;
        std::nth_element(ids.begin(), last, ids.end(), is_better);
        threshold = logits[*last]; // a later token of the same logit has the higher id and loses
        ids.resize(n_kept);
    };
    ids.clear();
    for (int32_t id = 0; id < n_vocab; ++id) {
        if (logits[id] > threshold) {
            ids.push_back(id);
            if (ids.size() == n_room) {
                shrink();
            }
        }
    }
    if (ids.size() > n_kept) {
        shrink();
    }
}

// Weights of tokens, that of the likeliest being 1.
struct Weights {
    const float * logits;
    int n_vocab;
    float best;
    float inverse_temperature;

    float of(int32_t id) const { return exp_of_bounded(bounded_exponent((logits[id] - best) * inverse_temperature)); }

    // The block that begins at `begin`, 0 past the end of the row; returns how many tokens it has.
    int fill(int begin, float (&block)[kBlock]) const {
        const float * x = logits + begin;
        const int n = std::min(kBlock, n_vocab - begin);
        std::fill(block + n, block + kBlock, kLowestExponent);
        for (int i = 0; i < n; ++i) {
            block[i] = bounded_exponent((x[i] - best) * inverse_temperature);
        }
        for (int i = 0; i < kBlock; ++i) {
            block[i] = exp_of_bounded(block[i]);
        }
        return n;
    }

    double sum(const std::vector<int32_t> & ids) const {
        double total = 0;
        for (const int32_t id : ids) {
            total += static_cast<double>(of(id));
        }
        return total;
    }
};

// The weight of the whole row; block_sums[i] is that of its i-th block.
double sum_all(const Weights & weights, std::vector<double> & block_sums) {
    block_sums.clear();
    double total = 0;
    float block[kBlock];
    for (int begin = 0; begin < weights.n_vocab; begin += kBlock) {
        weights.fill(begin, block);
        float lanes[8] = {};
        for (int i = 0; i < kBlock; i += 8) {
            for (int k = 0; k < 8; ++k) {
                lanes[k] += block[i + k];
            }
        }
        double sum = 0;
        for (const float lane : lanes) {
            sum += static_cast<double>(lane);
        }
        block_sums.push_back(sum);
        total += sum;
    }
    return total;
}

// The token at which the running weight of `ids` passes `mass`; with ids = nullptr those from 0.
int32_t draw(const Weights & weights, double mass, const int32_t * ids, size_t n, int32_t first = 0) {
    int32_t chosen = ids != nullptr ? ids[0] : first;
    for (size_t i = 0; i < n && mass >= 0; ++i) {
        const int32_t id = ids != nullptr ? ids[i] : first + static_cast<int32_t>(i);
        const auto weight = static_cast<double>(weights.of(id));
        if (weight > 0) {
            chosen = id;
            mass -= weight;
        }
    }
    return chosen;
}

int32_t draw_from_all(const Weights & weights, double u, std::vector<double> & block_sums) {
    double mass = u * sum_all(weights, block_sums);
    size_t block = 0;
    for (size_t i = 0; i < block_sums.size() && mass >= 0; ++i) {
        if (block_sums[i] > 0) {
            block = i;
            mass -= block_sums[i];
        }
    }
    mass += block_sums[block]; // what is left to pass within the block
    const auto first = static_cast<int32_t>(block) * kBlock;
    return draw(weights, mass, nullptr, static_cast<size_t>(std::min(kBlock, weights.n_vocab - first)), first);
}

// Every token of at least this weight (above 0), in order of id.
void gather(const Weights & weights, float least, std::vector<int32_t> & ids) {
    ids.clear();
    float block[kBlock];
    for (int begin = 0; begin < weights.n_vocab; begin += kBlock) {
        const int n = weights.fill(begin, block);
        for (int i = 0; i < n; ++i) {
            if (block[i] >= least && block[i] > 0) {
                ids.push_back(begin + i);
            }
        }
    }
}

// Best tokens that together weigh `goal` or more: few of them when few will do.
void gather_mass(const Weights & weights, double goal, std::vector<int32_t> & ids) {
    for (const float least : {0x1.0p-8f, 0x1.0p-16f}) {
        gather(weights, least, ids);
        if (weights.sum(ids) >= goal) {
            return;
        }
    }
    gather(weights, 0.0f, ids);
}

// Shorten `ids` to the smallest set of best tokens whose weight reaches `goal`, the one that crosses it included.
void keep_mass(const Weights & weights, double goal, std::vector<int32_t> & ids) {
    const auto at = [&](size_t i) { return ids.begin() + static_cast<std::ptrdiff_t>(i); };
    size_t low = 0; // tokens before `low` are kept and weigh less than `goal` together
    size_t high = ids.size();
    double mass = 0;
    while (high - low > 1) {
        const size_t middle = low + (high - low) / 2;
        std::nth_element(at(low), at(middle), at(high), IsBetter{weights.logits});
        double better = 0;
        for (size_t i = low; i < middle; ++i) {
            better += static_cast<double>(weights.of(ids[i]));
        }
        if (mass + better >= goal) {
            high = middle;
        } else {
            mass += better;
            low = middle;
        }
    }
    ids.resize(high);
}

// Put `ids`, which are the best tokens of the row, in order of id.
void sort_ids(const Weights & weights, std::vector<int32_t> & ids) {
    if (ids.size() * 16 < static_cast<size_t>(weights.n_vocab)) {
        std::sort(ids.begin(), ids.end());
        return;
    }
    const IsBetter is_better{weights.logits};
    const int32_t last = *std::max_element(ids.begin(), ids.end(), is_better); // "larger" is worse in this order
    ids.clear();
    for (int32_t id = 0; id < weights.n_vocab; ++id) {
        if (!is_better(last, id) && weights.logits[id] >= weights.logits[last]) {
            ids.push_back(id);
        }
    }
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
    const Weights weights{logits, n_vocab_, best, 1.0f / std::max(kLowestTemperature, params_.temperature)};
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
        const auto is_unlikely = [&](int32_t id) { return weights.of(id) < least; };
        order_.erase(std::remove_if(order_.begin(), order_.end(), is_unlikely), order_.end());
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
