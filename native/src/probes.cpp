// The parts of a step one by one, for tests and measurements; see dflash.h.
#include <algorithm>

#include "read_block.h"
#include "session.h"

namespace dflash {

void Session::probe_append(const std::vector<int32_t> & tokens, float * logits) {
    require_tokens(tokens, "text");
    phase_ = Phase::kIdle;
    passes_.compute().is_cancelled.store(false, std::memory_order_relaxed);
    if (n_past() + static_cast<int>(tokens.size()) > passes_.shape().context_tokens) {
        throw Error(DFLASH_BAD_ARGUMENT, "The tokens do not fit the context.");
    }
    const auto n_vocab = static_cast<size_t>(target_.n_vocab());
    const auto chunk = static_cast<size_t>(logits ? std::min(passes_.shape().prefill_chunk, DFLASH_MAX_ROWS) : passes_.shape().prefill_chunk);
    for (size_t at = 0; at < tokens.size(); at += chunk) {
        const size_t end = std::min(at + chunk, tokens.size());
        append({tokens.begin() + static_cast<ptrdiff_t>(at), tokens.begin() + static_cast<ptrdiff_t>(end)}, logits != nullptr, draft_ != nullptr);
        for (size_t i = at; logits && i < end; ++i) {
            std::copy_n(passes_.logits(static_cast<int>(i - at)), n_vocab, logits + i * n_vocab);
        }
    }
}

Marginals Session::probe_draft(int32_t root, int block_size, int k, float * hidden) {
    if (!draft_) {
        throw Error(DFLASH_BAD_STATE, "The session has no draft.");
    }
    complete_draft_context();
    if (n_draft_rows_ < n_past()) {
        throw Error(DFLASH_BAD_STATE, "The draft has not seen the whole context.");
    }
    const int trained = draft_->config().block_size;
    if (block_size < 0 || block_size == 1 || block_size > trained) {
        throw Error(DFLASH_BAD_ARGUMENT, format("A block of %d; this draft fills 2 to %d.", block_size, trained));
    }
    passes_.compute().is_cancelled.store(false, std::memory_order_relaxed);
    return first_candidates(passes_.draft_block(root, n_past(), block_size > 0 ? block_size : trained, k, hidden), k);
}

void Session::probe_verify(const std::vector<int32_t> & tokens, const std::vector<int32_t> & parents, float * logits) {
    if (static_cast<int>(tokens.size()) > passes_.shape().max_rows) {
        throw Error(DFLASH_BAD_ARGUMENT, format("%zu rows; this session verifies at most %d.", tokens.size(), passes_.shape().max_rows));
    }
    require_tokens(tokens, "tree");
    phase_ = Phase::kIdle;
    passes_.compute().is_cancelled.store(false, std::memory_order_relaxed);
    complete_draft_context();
    passes_.verify(make_tree(tokens, parents), n_past(), draft_ != nullptr);
    const auto n_vocab = static_cast<size_t>(target_.n_vocab());
    for (size_t i = 0; logits && i < tokens.size(); ++i) {
        std::copy_n(passes_.logits(static_cast<int>(i)), n_vocab, logits + i * n_vocab);
    }
}

void Session::probe_commit(const std::vector<int32_t> & rows) {
    const Tree & tree = passes_.verified_tree();
    for (size_t i = 0; i < rows.size(); ++i) {
        if (rows[i] < 0 || rows[i] >= tree.n_rows() || tree.parents[static_cast<size_t>(rows[i])] != (i == 0 ? -1 : rows[i - 1])) {
            throw Error(DFLASH_BAD_ARGUMENT, "The rows are not a path of the tree just verified, root first.");
        }
    }
    if (n_past() + static_cast<int>(rows.size()) > passes_.shape().context_tokens) {
        throw Error(DFLASH_BAD_ARGUMENT, "The rows do not fit the context.");
    }
    is_state_lost_ = passes_.has_recurrent();
    passes_.commit(rows, n_past());
    passes_.compute().wait(); // who probes also takes the time
    is_state_lost_ = false;
    n_draft_rows_ = n_draft_rows_ == n_past() ? n_past() + static_cast<int>(rows.size()) : n_draft_rows_;
    for (const int32_t row : rows) {
        cached_.push_back(tree.tokens[static_cast<size_t>(row)]);
    }
}

} // namespace dflash
