// Steps in two halves: what the target says next is looked at, cut or chosen anew before it is committed; see dflash.h.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "session.h"

namespace dflash {

namespace {

bool allows_any(const uint32_t * allowed, int n_words, int64_t n_vocab) {
    for (int64_t id = 0; id < std::min(n_vocab, int64_t{32} * n_words); ++id) {
        if ((allowed[id / 32] >> (id % 32) & 1u) != 0) {
            return true;
        }
    }
    return false;
}

} // namespace

void Session::propose(dflash_step & out) {
    run_proposal();
    const std::vector<int32_t> & tokens = proposal_.accepted.tokens;
    const size_t n = n_until_end(tokens, &out.finish);
    out.n_committed = static_cast<int32_t>(n);
    std::copy_n(tokens.begin(), n, out.tokens);
    std::copy_n(proposal_.logprobs.begin(), n, out.logprobs);
}

void Session::likeliest(int index, int k, int32_t * ids, float * logprobs) {
    if (phase_ != Phase::kProposed) {
        throw Error(DFLASH_BAD_STATE, "There is no proposal to look at: propose first.");
    }
    const int n_vocab = static_cast<int>(target_.n_vocab());
    if (index < 0 || index >= static_cast<int>(proposal_.accepted.rows.size()) || k < 1 || k > std::min(DFLASH_MAX_ROWS, n_vocab)) {
        throw Error(DFLASH_BAD_ARGUMENT, format("Place %d of the proposal has no %d likeliest tokens.", index, k));
    }
    const float * logits = passes_.logits(proposal_.accepted.rows[static_cast<size_t>(index)]);
    std::vector<int32_t> order(static_cast<size_t>(n_vocab));
    std::iota(order.begin(), order.end(), 0);
    // What is not a number comes last: it would leave nothing in order.
    const auto rank = [logits](int32_t id) { return std::isnan(logits[id]) ? -std::numeric_limits<float>::infinity() : logits[id]; };
    std::partial_sort(order.begin(), order.begin() + k, order.end(), [&](int32_t a, int32_t b) { return rank(a) != rank(b) ? rank(a) > rank(b) : a < b; });
    // The others follow from the likeliest one's: one pass over the row.
    const double best = log_probability(logits, n_vocab, order[0]);
    for (int i = 0; i < k; ++i) {
        ids[i] = order[static_cast<size_t>(i)];
        logprobs[i] = static_cast<float>(best + static_cast<double>(logits[ids[i]]) - static_cast<double>(logits[order[0]]));
    }
}

bool Session::settle(int n_keep, const uint32_t * allowed, int n_words, dflash_step & out) {
    if (phase_ != Phase::kProposed) {
        throw Error(DFLASH_BAD_STATE, "There is no proposal to settle: propose first.");
    }
    Accepted & accepted = proposal_.accepted;
    const int n_proposed = static_cast<int>(n_until_end(accepted.tokens, nullptr));
    const int most = allowed ? n_proposed - 1 : n_proposed;
    if (n_keep < (allowed ? 0 : 1) || n_keep > most) {
        throw Error(DFLASH_BAD_ARGUMENT, format("%d of %d proposed tokens cannot be kept.", n_keep, n_proposed));
    }
    if (allowed && !allows_any(allowed, n_words, target_.n_vocab())) {
        throw Error(DFLASH_BAD_ARGUMENT, "No token of the vocabulary is allowed.");
    }
    if (allowed || n_keep < n_proposed) {
        const auto keep = static_cast<size_t>(n_keep);
        accepted.tokens.resize(keep);
        if (allowed) {
            const float * logits = passes_.logits(accepted.rows[keep]);
            const int32_t token = sampler_->choose_allowed(logits, accepted.tokens, allowed, n_words);
            accepted.tokens.push_back(token);
            proposal_.logprobs[keep] = generation_.want_logprobs ? static_cast<float>(log_probability(logits, static_cast<int>(target_.n_vocab()), token))
                                                                 : std::numeric_limits<float>::quiet_NaN();
        }
        accepted.rows.resize(accepted.tokens.size());
        proposal_.logprobs.resize(accepted.tokens.size());
        proposal_.is_free = false;
    }
    return finish_proposal(out);
}

// How many of `tokens` join the reply: up to a stop token or a limit; `finish`, unless null, says which.
size_t Session::n_until_end(const std::vector<int32_t> & tokens, int32_t * finish) const {
    const std::vector<int32_t> & stops = target_.stop_tokens();
    int32_t found = DFLASH_FINISH_NONE;
    size_t n = 0;
    while (n < tokens.size() && found == DFLASH_FINISH_NONE) {
        const int32_t token = tokens[n++];
        if (!generation_.ignore_stop && std::binary_search(stops.begin(), stops.end(), token)) {
            found = DFLASH_FINISH_STOP;
        } else if (n_reply_ + static_cast<int>(n) == max_tokens_) {
            found = is_context_limit_ ? DFLASH_FINISH_CONTEXT : DFLASH_FINISH_LENGTH;
        }
    }
    if (finish) {
        *finish = found;
    }
    return n;
}

} // namespace dflash
