// Loops over whole rows come in blocks, so that compilers vectorise them; see token_weights.h.

#include "token_weights.h"

#include <algorithm>
#include <cstring>
#include <limits>

namespace dflash {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr int kBlock = 256; // weights summed in float before they join a double
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

struct IsBetter {
    const float * logits;
    bool operator()(int32_t a, int32_t b) const { return logits[a] != logits[b] ? logits[a] > logits[b] : a < b; }
};

// The weights of the block that begins at `begin`, 0 past the end of the row; returns how many tokens it has.
int fill(const TokenWeights & weights, int begin, float (&block)[kBlock]) {
    const float * x = weights.logits + begin;
    const int n = std::min(kBlock, weights.n_vocab - begin);
    const float best = weights.best;
    const float inverse_temperature = weights.inverse_temperature;
    std::fill(block + n, block + kBlock, kLowestExponent);
    for (int i = 0; i < n; ++i) {
        block[i] = bounded_exponent((x[i] - best) * inverse_temperature);
    }
    for (int i = 0; i < kBlock; ++i) {
        block[i] = exp_of_bounded(block[i]);
    }
    return n;
}

} // namespace

float TokenWeights::of(int32_t id) const {
    return exp_of_bounded(bounded_exponent((logits[id] - best) * inverse_temperature));
}

double TokenWeights::sum(const std::vector<int32_t> & ids) const {
    double total = 0;
    for (const int32_t id : ids) {
        total += static_cast<double>(of(id));
    }
    return total;
}

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

double sum_all(const TokenWeights & weights, std::vector<double> & block_sums) {
    block_sums.clear();
    double total = 0;
    float block[kBlock];
    for (int begin = 0; begin < weights.n_vocab; begin += kBlock) {
        fill(weights, begin, block);
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

int32_t draw(const TokenWeights & weights, double mass, const int32_t * ids, size_t n, int32_t first) {
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

int32_t draw_from_all(const TokenWeights & weights, double u, std::vector<double> & block_sums) {
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

void gather(const TokenWeights & weights, float least, std::vector<int32_t> & ids) {
    ids.clear();
    float block[kBlock];
    for (int begin = 0; begin < weights.n_vocab; begin += kBlock) {
        const int n = fill(weights, begin, block);
        for (int i = 0; i < n; ++i) {
            if (block[i] >= least && block[i] > 0) {
                ids.push_back(begin + i);
            }
        }
    }
}

void gather_mass(const TokenWeights & weights, double goal, std::vector<int32_t> & ids) {
    for (const float least : {0x1.0p-8f, 0x1.0p-16f}) {
        gather(weights, least, ids);
        if (weights.sum(ids) >= goal) {
            return;
        }
    }
    gather(weights, 0.0f, ids);
}

void keep_mass(const TokenWeights & weights, double goal, std::vector<int32_t> & ids) {
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

void sort_ids(const TokenWeights & weights, std::vector<int32_t> & ids) {
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

void drop_light(const TokenWeights & weights, float least, std::vector<int32_t> & ids) {
    const auto is_light = [&](int32_t id) { return weights.of(id) < least; };
    ids.erase(std::remove_if(ids.begin(), ids.end(), is_light), ids.end());
}

} // namespace dflash
