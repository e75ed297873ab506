// Sorting candidates and weighing them by the token before; see read_block.h.
#include "read_block.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace dflash {

namespace {

constexpr float kNever = -std::numeric_limits<float>::infinity();

// Never above 0 and never NaN; what has no probability is never worth a node.
float log_of(float probability) {
    return probability > 0 ? std::min(std::log(probability), 0.0f) : -100.0f;
}

float log_sigmoid(float x) {
    return x >= 0 ? -std::log1p(std::exp(-x)) : x - std::log1p(std::exp(x));
}

// Candidates best first; ties by token, so that every device gives the same order.
std::vector<size_t> best_first(const float * logprobs, const int32_t * ids, size_t k) {
    std::vector<size_t> order(k);
    std::iota(order.begin(), order.end(), size_t{0});
    std::sort(order.begin(), order.end(), [&](size_t a, size_t b) { return logprobs[a] != logprobs[b] ? logprobs[a] > logprobs[b] : ids[a] < ids[b]; });
    return order;
}

// Log-probabilities of the candidates of one position after one token.
class Row {
  public:
    explicit Row(std::vector<float> logprobs) : logprobs_(std::move(logprobs)) {}

    // The candidates keep what they have together; the token before only moves it between them.
    void shift(const float * added) {
        const double mass = log_sum();
        for (size_t c = 0; c < logprobs_.size(); ++c) {
            logprobs_[c] = std::isfinite(added[c]) ? logprobs_[c] + added[c] : kNever;
        }
        const double shifted = log_sum();
        for (float & logprob : logprobs_) {
            logprob = std::min(static_cast<float>(static_cast<double>(logprob) + mass - shifted), 0.0f);
            logprob = logprob <= 0 ? logprob : kNever; // not NaN
        }
    }

    // The confidence head says how likely the best candidate is right; it may only lower what the logits say.
    void limit(float confidence) {
        const float best = *std::max_element(logprobs_.begin(), logprobs_.end());
        if (confidence < best) {
            for (float & logprob : logprobs_) {
                logprob += confidence - best;
            }
        }
    }

    std::vector<float> && logprobs() { return std::move(logprobs_); }

  private:
    double log_sum() const {
        const float best = *std::max_element(logprobs_.begin(), logprobs_.end());
        double sum = 0;
        for (const float logprob : logprobs_) {
            sum += std::exp(static_cast<double>(logprob) - static_cast<double>(best));
        }
        return static_cast<double>(best) + std::log(sum);
    }

    std::vector<float> logprobs_;
};

// The data of a result; nullptr for one that the pass does not have.
class Results {
  public:
    Results(const DraftPass & pass, const std::vector<const void *> & data) : pass_(pass), data_(data) {}
    const float * floats(const ggml_tensor * result) const { return static_cast<const float *>(find(result)); }
    const int32_t * ids(const ggml_tensor * result) const { return static_cast<const int32_t *>(find(result)); }

  private:
    const void * find(const ggml_tensor * result) const {
        const auto at = std::find(pass_.results.begin(), pass_.results.end(), result) - pass_.results.begin();
        return result ? data_[static_cast<size_t>(at)] : nullptr;
    }

    const DraftPass & pass_;
    const std::vector<const void *> & data_;
};

// Every position on its own.
Marginals read_independent(const DraftPass & pass, const Results & results) {
    const int32_t * chunks = results.ids(pass.chunks);
    const int32_t * ids = results.ids(pass.ids);
    const float * probabilities = results.floats(pass.probabilities);
    const auto k = static_cast<size_t>(pass.k);
    const size_t n_candidates = chunks ? k * k : k;
    Marginals found;
    found.n_depths = static_cast<int>(pass.n_depths);
    found.k = pass.k;
    std::vector<std::pair<float, int32_t>> candidates;
    for (size_t depth = 0; depth < static_cast<size_t>(found.n_depths); ++depth) {
        candidates.clear();
        for (size_t c = 0; c < n_candidates; ++c) {
            const size_t at = depth * n_candidates + c;
            const int32_t token = chunks ? chunks[depth * k + c / k] * pass.chunk + ids[at] : ids[at];
            if (token >= 0 && token < pass.n_vocab) { // else filling behind the vocabulary
                candidates.emplace_back(log_of(probabilities[at]), token);
            }
        }
        for (int32_t token = 0; candidates.size() < k; ++token) { // all but a few have no probability at all
            if (std::none_of(candidates.begin(), candidates.end(), [token](const auto & candidate) { return candidate.second == token; })) {
                candidates.emplace_back(log_of(0), token);
            }
        }
        std::partial_sort(candidates.begin(), candidates.begin() + pass.k, candidates.end(),
                          [](const auto & a, const auto & b) { return a.first != b.first ? a.first > b.first : a.second < b.second; });
        for (size_t c = 0; c < k; ++c) {
            found.logprobs.push_back(candidates[c].first);
            found.ids.push_back(candidates[c].second);
        }
    }
    return found;
}

// The table of one draft pass whose head looks at the token before, row by row.
class ConditionalReader {
  public:
    ConditionalReader(const DraftPass & pass, const Results & results)
        : k_(static_cast<size_t>(pass.k)),
          n_depths_(static_cast<size_t>(pass.n_depths)),
          after_root_(results.floats(pass.after_root)),
          after_(results.floats(pass.after)),
          chain_(results.ids(pass.chain)),
          chain_probabilities_(results.floats(pass.chain_probabilities)),
          confidence_(results.floats(pass.confidence)),
          confidence_root_(results.floats(pass.confidence_root)),
          confidence_after_(results.floats(pass.confidence_after)) {
        const int32_t * ids = results.ids(pass.ids);
        const float * probabilities = results.floats(pass.probabilities);
        ids_.assign(ids, ids + k_ * n_depths_);
        for (size_t i = 0; i < ids_.size(); ++i) {
            const bool is_token = ids_[i] >= 0 && ids_[i] < pass.n_vocab;
            ids_[i] = is_token ? ids_[i] : 0;
            const auto begin = ids_.begin() + static_cast<ptrdiff_t>(i / k_ * k_);
            const auto own = ids_.begin() + static_cast<ptrdiff_t>(i);
            is_counted_.push_back(is_token && std::find(begin, own, ids_[i]) == own); // a repeated token counts once
            alone_.push_back(is_counted_[i] ? log_of(probabilities[i]) : kNever);
        }
    }

    Marginals read() const {
        Marginals found;
        found.n_depths = static_cast<int>(n_depths_);
        found.k = static_cast<int>(k_);
        found.conditional.assign(n_depths_ * k_ * k_, kNever);
        std::vector<size_t> before = {0}; // candidates of the depth above in their new order
        for (size_t depth = 0; depth < n_depths_; ++depth) {
            std::vector<std::vector<float>> rows;
            for (const size_t candidate : before) {
                rows.push_back(row(depth, candidate));
            }
            // Best first on the greedy path, which so goes through the first candidate of each depth.
            const std::vector<size_t> order = best_first(rows[0].data(), &ids_[depth * k_], k_);
            for (size_t c = 0; c < k_; ++c) {
                found.ids.push_back(ids_[depth * k_ + order[c]]);
                found.logprobs.push_back(rows[0][order[c]]);
                for (size_t r = 0; r < rows.size(); ++r) {
                    found.conditional[(depth * k_ + r) * k_ + c] = rows[r][order[c]];
                }
            }
            before = order;
        }
        return found;
    }

  private:
    // Log-probabilities of the candidates at `depth` when candidate `before` of the depth above stands before them.
    std::vector<float> row(size_t depth, size_t before) const {
        const auto begin = static_cast<ptrdiff_t>(depth * k_);
        Row row(std::vector<float>(alone_.begin() + begin, alone_.begin() + begin + static_cast<ptrdiff_t>(k_)));
        if (chain_ && (depth == 0 || ids_[(depth - 1) * k_ + before] == chain_[depth - 1])) {
            std::vector<float> exact(k_, kNever);
            for (size_t c = 0; c < k_; ++c) {
                exact[c] = is_counted_[depth * k_ + c] ? log_of(chain_probabilities_[depth * k_ + c]) : kNever;
            }
            row = Row(std::move(exact));
        } else {
            row.shift(depth == 0 ? after_root_ : after_ + ((depth - 1) * k_ + before) * k_);
        }
        if (confidence_) {
            const float of_before = !confidence_root_ ? 0.0f : depth == 0 ? confidence_root_[0] : confidence_after_[(depth - 1) * k_ + before];
            row.limit(log_sigmoid(confidence_[depth] + of_before));
        }
        return row.logprobs();
    }

    size_t k_, n_depths_;
    const float * after_root_;
    const float * after_;
    const int32_t * chain_;
    const float * chain_probabilities_;
    const float * confidence_;
    const float * confidence_root_;
    const float * confidence_after_;
    std::vector<int32_t> ids_;
    std::vector<bool> is_counted_;
    std::vector<float> alone_; // the token before left out of account
};

} // namespace

Marginals read_block(const DraftPass & pass, const std::vector<const void *> & results) {
    const Results data(pass, results);
    return pass.after_root || pass.chain ? ConditionalReader(pass, data).read() : read_independent(pass, data);
}

Marginals first_candidates(const Marginals & marginals, int k) {
    Marginals first;
    first.n_depths = marginals.n_depths;
    first.k = k;
    for (int depth = 0; depth < marginals.n_depths; ++depth) {
        for (int rank = 0; rank < k; ++rank) {
            const auto at = static_cast<size_t>(depth * marginals.k + rank);
            first.ids.push_back(rank < marginals.k ? marginals.ids[at] : 0);
            first.logprobs.push_back(rank < marginals.k ? marginals.logprobs[at] : kNever);
        }
    }
    return first;
}

} // namespace dflash
