// One row of logits as weights of its tokens: which are best, what they weigh together, and which one a draw meets.
// Standard library only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace dflash {

// e^((logit - best) / temperature): the likeliest token weighs 1, what is not a number nothing.
struct TokenWeights {
    const float * logits; // n_vocab
    int n_vocab;
    float best; // of the logits
    float inverse_temperature;

    float of(int32_t id) const;
    double sum(const std::vector<int32_t> & ids) const;
};

// The largest number of a row, NaN left out; -inf when there is none.
float largest(const float * x, int n);
// The first place of `value`, which is in the row.
int32_t first_equal(const float * x, int n, float value);

// The k best tokens in no particular order; fewer when fewer are numbers.
void keep_best(const float * logits, int n_vocab, int k, std::vector<int32_t> & ids);
// Every token of at least this weight (above 0), in order of id.
void gather(const TokenWeights & weights, float least, std::vector<int32_t> & ids);
// Best tokens that together weigh `goal` or more: few of them when few will do.
void gather_mass(const TokenWeights & weights, double goal, std::vector<int32_t> & ids);
// Shorten `ids` to the smallest set of best tokens whose weight reaches `goal`, the one that crosses it included.
void keep_mass(const TokenWeights & weights, double goal, std::vector<int32_t> & ids);
// Leave out of `ids` what weighs less than `least`.
void drop_light(const TokenWeights & weights, float least, std::vector<int32_t> & ids);
// Put `ids`, which are the best tokens of the row, in order of id.
void sort_ids(const TokenWeights & weights, std::vector<int32_t> & ids);

// The weight of the whole row; block_sums[i] is that of its i-th block.
double sum_all(const TokenWeights & weights, std::vector<double> & block_sums);
// The token at which the running weight of `ids` passes `mass`; with ids = nullptr those of n tokens from `first` on.
int32_t draw(const TokenWeights & weights, double mass, const int32_t * ids, size_t n, int32_t first = 0);
// The token at which the running weight of the whole row passes the share `u` of it; block_sums is room to work in.
int32_t draw_from_all(const TokenWeights & weights, double u, std::vector<double> & block_sums);

} // namespace dflash
