// What of a prompt need not be read again: rows that the session still holds, and what prefix_cache.h keeps of others.
#include <algorithm>

#include "clock.h"
#include "session.h"

namespace dflash {

namespace {

constexpr int kLeastSaved = 32; // tokens that a conversation has to lose before it is kept
constexpr int kLeastGain = 16;  // tokens that have to be gained for rows to be put back
constexpr uint64_t kMostBytes = 8ull << 30; // unless more is asked for
constexpr uint64_t kUnknownBytes = 1ull << 30; // where the system does not say what is free
constexpr int kBlockTokens = 256;
constexpr uint64_t kUsualContexts = 4; // as many full contexts are kept at most, unless more is asked for
constexpr uint64_t kUsualStates = 16;  // checkpoints of each

// A quarter of what is left for programs, and no more than a few conversations can fill.
uint64_t automatic_bytes(Passes & passes, const PrefixCache::Shape & shape) {
    const uint64_t available = host_memory().available;
    // Weights on the CPU are mostly the mapped file, which counts as free and must stay where it is.
    dflash_memory memory = {};
    passes.fill_memory(memory);
    const uint64_t needed = passes.compute().device().is_cpu ? memory.target_weights_bytes + memory.draft_weights_bytes : 0;
    const uint64_t quarter = (available == 0 ? kUnknownBytes : available > needed ? available - needed : 0) / 4;
    const auto context = static_cast<uint64_t>(passes.shape().context_tokens);
    return std::min({kMostBytes, quarter, kUsualContexts * (context * (shape.row_bytes + shape.draft_row_bytes) + kUsualStates * shape.state_bytes)});
}

} // namespace

PrefixCache::Shape Session::prefix_shape(Passes & passes, int64_t most_bytes) {
    if (most_bytes < -1) {
        throw Error(DFLASH_BAD_ARGUMENT, format("%lld bytes for prefixes; -1 is none, 0 what suits the machine.", static_cast<long long>(most_bytes)));
    }
    PrefixCache::Shape shape;
    // Blocks end where chunks of a prompt end, so that what is read after them is read as if all had been.
    shape.block_tokens = std::min(passes.shape().prefill_chunk, kBlockTokens);
    shape.row_bytes = passes.resting_cache(false).row_bytes();
    shape.draft_row_bytes = passes.resting_cache(true).row_bytes();
    shape.state_bytes = passes.recurrent().saved_bytes();
    shape.most_bytes = most_bytes > 0 ? static_cast<uint64_t>(most_bytes) : most_bytes < 0 ? 0 : automatic_bytes(passes, shape);
    return shape;
}

// Keep the longest start of `prompt` that is still valid here or was saved; returns how many rows that is.
int Session::reuse(const std::vector<int32_t> & prompt, dflash_begun & out) {
    const int64_t start = now_us();
    const int n_most = static_cast<int>(prompt.size()) - 1;
    int n_alike = 0;
    while (!generation_.no_reuse && n_alike < std::min(n_most, n_past()) && prompt[static_cast<size_t>(n_alike)] == cached_[static_cast<size_t>(n_alike)]) {
        ++n_alike;
    }
    // Rows without draft context would leave the draft blind.
    const int n_rows = wants_draft() ? std::min(n_alike, n_draft_rows_ + n_kept_) : n_alike;
    // Recurrent state cannot be cut back; there the longest checkpoint within the shared start counts.
    Checkpoint back;
    const bool has_state = !passes_.has_recurrent() || (!is_state_lost_ && n_rows == n_past());
    for (const Checkpoint & checkpoint : checkpoints_) {
        back = !has_state && checkpoint.n_tokens <= n_rows ? checkpoint : back;
    }
    int n = has_state ? n_rows : back.n_tokens;
    if (!generation_.no_reuse) {
        PrefixCache::Match match = prefixes_.find(prompt, n_most, wants_draft(), passes_.has_recurrent());
        // Rows of another prompt are about to be overwritten. Those of a reply alone are hardly ever asked for again.
        if (n_alike < std::min(n_past(), static_cast<int>(prompt_.size()) - 1) && n_past() - n_alike >= kLeastSaved) {
            const int64_t before = now_us();
            save_conversation();
            save_us_ += now_us() - before;
        }
        if (match.n_tokens >= n + kLeastGain) {
            const int64_t before = now_us();
            out.n_restored = match.n_tokens - n;
            n = restore(prompt, match, n_alike);
            restore_us_ += now_us() - before;
            out.reuse_us = now_us() - start;
            return n;
        }
    }
    if (!has_state) {
        if (back.state) {
            passes_.recurrent().restore(back.state->data());
        } else {
            passes_.recurrent().clear();
        }
        is_state_lost_ = false;
    }
    cached_.resize(static_cast<size_t>(n));
    n_draft_rows_ = std::min(n_draft_rows_, n);
    n_kept_ = std::min(n_kept_, n - n_draft_rows_);
    while (!checkpoints_.empty() && checkpoints_.back().n_tokens > n) {
        checkpoints_.pop_back();
    }
    out.reuse_us = now_us() - start;
    return n;
}

// Copy what the session holds to the computer's memory, as far as it is not there yet.
void Session::save_conversation() {
    if (prefixes_.shape().most_bytes == 0) {
        return;
    }
    complete_draft_context();
    if (!is_state_lost_) {
        save_checkpoint();
    }
    prefixes_.save(cached_, n_draft_rows_, checkpoints_,
                   [this](bool is_draft, int first, int n, uint8_t * out) { passes_.resting_cache(is_draft).save_rows(first, n, out); });
}

// Make the session hold what was found; n_alike rows of the target's cache are the same already.
int Session::restore(const std::vector<int32_t> & prompt, const PrefixCache::Match & match, int n_alike) {
    complete_draft_context(); // before rows are overwritten
    int n = std::min(n_alike, match.n_tokens);
    int n_draft = std::min(n_draft_rows_, n);
    for (const PrefixCache::Piece & piece : match.pieces) {
        const uint8_t * rows = piece.bytes->data();
        const int end = piece.first + piece.n_used;
        if (n < end) {
            passes_.resting_cache(false).restore_rows(n, end - n, rows, piece.first, piece.n_rows);
            n = end;
        }
        const int draft_end = piece.first + std::min(piece.n_used, piece.n_draft_rows);
        if (n_draft >= piece.first && n_draft < draft_end) {
            const uint8_t * draft_rows = rows + static_cast<size_t>(piece.n_rows) * prefixes_.shape().row_bytes;
            passes_.resting_cache(true).restore_rows(n_draft, draft_end - n_draft, draft_rows, piece.first, piece.n_draft_rows);
            n_draft = draft_end;
        }
    }
    if (passes_.has_recurrent()) {
        passes_.recurrent().restore(match.checkpoints.back().state->data());
        is_state_lost_ = false;
        // Those of the shared start are the session's own as well as the found ones.
        std::vector<Checkpoint> all = match.checkpoints;
        for (const Checkpoint & own : checkpoints_) {
            const auto is_same = [&own](const Checkpoint & other) { return other.n_tokens == own.n_tokens; };
            if (own.n_tokens <= n_alike && own.n_tokens <= match.n_tokens && std::none_of(all.begin(), all.end(), is_same)) {
                all.push_back(own);
            }
        }
        std::sort(all.begin(), all.end(), [](const Checkpoint & a, const Checkpoint & b) { return a.n_tokens < b.n_tokens; });
        checkpoints_ = std::move(all);
    }
    cached_.assign(prompt.begin(), prompt.begin() + match.n_tokens);
    n_draft_rows_ = n_draft;
    n_kept_ = 0;
    ++n_restores_;
    prefixes_.figures().n_found_tokens += static_cast<uint64_t>(match.n_tokens);
    return match.n_tokens;
}

// Where the prefill that has begun takes checkpoints. They are so far apart that they take no more than the rows do.
void Session::plan_checkpoints() {
    places_.clear();
    const PrefixCache::Shape & shape = prefixes_.shape();
    if (!passes_.has_recurrent() || shape.most_bytes == 0) {
        return;
    }
    const int n_rows = static_cast<int>(prompt_.size()) - 1;
    places_ = checkpoint_places(prompt_, n_rows, n_past(), target_.stop_tokens(), shape.block_tokens, checkpoint_spacing());
}

// In whole chunks of a prompt: cut into smaller ones it takes longer to read.
int Session::checkpoint_spacing() const {
    const PrefixCache::Shape & shape = prefixes_.shape();
    const uint64_t n_rows = shape.state_bytes / std::max<uint64_t>(shape.row_bytes, 1);
    const int chunk = passes_.shape().prefill_chunk;
    const auto unit = static_cast<uint64_t>(chunk % shape.block_tokens == 0 ? chunk : shape.block_tokens);
    const uint64_t most = (1u << 24) / unit;
    return static_cast<int>(std::clamp<uint64_t>((n_rows + unit - 1) / unit, 1, most) * unit);
}

// Keep the recurrent state as it is now, if there is room for it.
void Session::save_checkpoint() {
    if (!passes_.has_recurrent() || n_past() == 0 || (!checkpoints_.empty() && checkpoints_.back().n_tokens == n_past())) {
        return;
    }
    // The running conversation's take at most half of the room.
    const uint64_t bytes = prefixes_.shape().state_bytes;
    const uint64_t half = prefixes_.shape().most_bytes / 2;
    thin_checkpoints(checkpoints_, n_past(), checkpoint_spacing(), half > bytes ? half - bytes : 0);
    const std::shared_ptr<Saved> state = prefixes_.allocate(bytes);
    if (state) {
        passes_.recurrent().save(state->data());
        checkpoints_.push_back({n_past(), state});
    }
}

void Session::fill_memory(dflash_memory & out) const {
    passes_.fill_memory(out);
    out.prefix_bytes = prefixes_.used_bytes();
}

void Session::fill_prefixes(dflash_prefixes & out) const {
    const PrefixCache::Figures & figures = prefixes_.figures();
    out.most_bytes = prefixes_.shape().most_bytes;
    out.used_bytes = prefixes_.used_bytes();
    out.fresh_bytes = prefixes_.fresh_bytes();
    out.n_restores = n_restores_;
    out.n_restored_tokens = figures.n_found_tokens;
    out.n_saved_tokens = figures.n_saved_tokens;
    out.n_evicted_tokens = figures.n_evicted_tokens;
    out.save_us = save_us_;
    out.restore_us = restore_us_;
}

} // namespace dflash
