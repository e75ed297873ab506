// The step and what surrounds it; see session.h.
#include "session.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>

#include "log.h"

namespace dflash {

namespace {

constexpr int kCandidates = 8;             // per depth: a node of rank r costs at least r siblings
constexpr int kLeastRows = 4;              // of a tree that was asked for
constexpr size_t kCheckpointBytes = 512u << 20;
constexpr double kMeasureUs = 1.0e6;       // at most this long per session for measuring the device

int64_t now_us() {
    return std::chrono::duration_cast<std::chrono::microseconds>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

std::vector<int> row_counts(const Device & device) {
    if (device.is_cpu) {
        return {1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16, 20, 24, 32, 40, 48, 56, 64};
    }
    return {1, 2, 4, 8, 12, 16, 24, 32, 48, 64};
}

void check_generation(const dflash_generation & generation) {
    const auto finite_in = [](float value, float low, float high, const char * name) {
        if (!(value >= low && value <= high)) { // also NaN
            throw Error(DFLASH_BAD_ARGUMENT, format("%s is %g; it must be between %g and %g.", name, static_cast<double>(value), static_cast<double>(low),
                                                    static_cast<double>(high)));
        }
    };
    finite_in(generation.temperature, 0, 100, "temperature");
    finite_in(generation.top_p, 0, 1, "top_p");
    finite_in(generation.min_p, 0, 1, "min_p");
    finite_in(generation.repeat_penalty, 0, 100, "repeat_penalty");
    finite_in(generation.frequency_penalty, -100, 100, "frequency_penalty");
    finite_in(generation.presence_penalty, -100, 100, "presence_penalty");
    const auto at_least = [](int32_t value, int32_t low, const char * name) {
        if (value < low) {
            throw Error(DFLASH_BAD_ARGUMENT, format("%s is %d; it must be %d or more.", name, value, low));
        }
    };
    at_least(generation.top_k, 0, "top_k");
    at_least(generation.max_tokens, 0, "max_tokens");
    at_least(generation.penalty_window, -1, "penalty_window");
    at_least(generation.tree_budget, 0, "tree_budget");
    at_least(generation.block_size, 0, "block_size");
    if (generation.draft_mode < DFLASH_DRAFT_AUTO || generation.draft_mode > DFLASH_DRAFT_OFF) {
        throw Error(DFLASH_BAD_ARGUMENT, format("There is no draft mode number %d.", generation.draft_mode));
    }
}

// The first rows of a tree: parents come first, so they are a tree of their own.
Tree first_rows(const Tree & tree, int n_rows) {
    const auto n = static_cast<size_t>(std::min(n_rows, tree.n_rows()));
    Tree cut = tree;
    cut.tokens.resize(n);
    cut.parents.resize(n);
    cut.depths.resize(n);
    cut.ranks.resize(n);
    cut.path_logprobs.resize(n);
    return cut;
}

} // namespace

SamplerParams sampler_params(const dflash_generation & generation) {
    SamplerParams params;
    params.temperature = generation.temperature;
    params.top_k = generation.top_k;
    params.top_p = generation.top_p > 0 ? generation.top_p : 1.0f;
    params.min_p = generation.min_p;
    params.repeat_penalty = generation.repeat_penalty > 0 ? generation.repeat_penalty : 1.0f;
    params.frequency_penalty = generation.frequency_penalty;
    params.presence_penalty = generation.presence_penalty;
    params.penalty_window = generation.penalty_window != 0 ? generation.penalty_window : 256;
    params.seed = generation.seed;
    return params;
}

SessionShape Session::shape_of(const Target & target, const Draft * draft, const dflash_session_params & params) {
    SessionShape shape;
    if (params.context_tokens < 0 || params.prefill_chunk < 0 || params.max_nodes < 0 || params.max_nodes >= DFLASH_MAX_ROWS) {
        throw Error(DFLASH_BAD_ARGUMENT, format("A context of %d tokens, chunks of %d and trees of %d nodes make no session.", params.context_tokens,
                                                params.prefill_chunk, params.max_nodes));
    }
    shape.context_tokens = params.context_tokens > 0 ? params.context_tokens : std::min(target.context_tokens(), 8192);
    if (shape.context_tokens < 2 || shape.context_tokens > (1 << 24)) {
        throw Error(DFLASH_BAD_ARGUMENT, format("A context of %d tokens is out of range (2 to 16777216).", shape.context_tokens));
    }
    shape.prefill_chunk = params.prefill_chunk > 0 ? params.prefill_chunk : target.device().is_cpu ? 128 : 512;
    shape.max_rows = draft ? (params.max_nodes > 0 ? params.max_nodes : DFLASH_MAX_ROWS - 1) + 1 : params.max_nodes + 1;
    shape.kv_k = kv_ggml_type(params.kv_k, target.device());
    shape.kv_v = kv_ggml_type(params.kv_v, target.device());
    return shape;
}

Session::Session(const Target & target, const Draft * draft, const dflash_session_params & params)
    : target_(target),
      draft_(draft),
      passes_(target, draft, shape_of(target, draft, params)),
      tuner_(row_counts(target.device())) {
    if (draft && &draft->target() != &target) {
        throw Error(DFLASH_BAD_ARGUMENT, "The draft was opened for another target.");
    }
    measure();
    reset();
}

// Run every kind of pass once before "loaded" is said, and give the tuner its first times.
void Session::measure() {
    const int64_t start = now_us();
    const int n_past = std::min(64, passes_.shape().context_tokens - 1);
    passes_.append(std::vector<int32_t>(static_cast<size_t>(n_past), 0), 0, false, draft_ != nullptr);
    const int n_runs = target_.device().is_cpu ? 2 : 4; // GPUs try a graph, capture it, and only then are as fast as they get
    const auto fastest = [n_runs](const auto & work) {
        double best = std::numeric_limits<double>::max();
        for (int i = 0; i < n_runs; ++i) {
            const int64_t before = now_us();
            work();
            best = std::min(best, static_cast<double>(now_us() - before));
        }
        return best;
    };
    tuner_.set_verify_us(1, fastest([&] {
                             passes_.append({0}, n_past, true, draft_ != nullptr);
                             passes_.argmax();
                         }));
    if (draft_) {
        tuner_.set_draft_us(fastest([&] { passes_.draft_block(0, n_past, draft_->config().block_size, kCandidates, nullptr); }));
    }
    const auto verify_us = [&](int n_rows, bool is_chain) {
        std::vector<int32_t> tokens(static_cast<size_t>(n_rows));
        std::vector<int32_t> parents(static_cast<size_t>(n_rows), 0);
        for (int i = 0; i < n_rows; ++i) {
            tokens[static_cast<size_t>(i)] = i % static_cast<int>(target_.n_vocab());
            parents[static_cast<size_t>(i)] = is_chain || i == 0 ? i - 1 : 0;
        }
        const Tree tree = make_tree(tokens, parents);
        return fastest([&] {
            passes_.verify(tree, n_past, draft_ != nullptr);
            passes_.argmax();
            passes_.commit({0, is_chain ? 1 : n_rows - 1}, n_past);
        });
    };
    const auto has_time = [&](int n_rows) { return n_rows <= passes_.shape().max_rows && static_cast<double>(now_us() - start) <= kMeasureUs; };
    if (draft_ && passes_.has_recurrent() && has_time(draft_->config().block_size)) {
        tuner_.set_chain_us(draft_->config().block_size, verify_us(draft_->config().block_size, true));
    }
    for (const int n_rows : {4, 8, 16, 32, 64}) {
        if (!has_time(n_rows)) {
            break;
        }
        tuner_.set_verify_us(n_rows, verify_us(n_rows, false));
    }
}

void Session::reset() {
    passes_.clear();
    cached_.clear();
    checkpoints_.clear();
    root_ = -1;
    n_draft_rows_ = 0;
    is_state_lost_ = false;
    phase_ = Phase::kIdle;
}

void Session::cancel() {
    passes_.compute().is_cancelled.store(true, std::memory_order_relaxed);
}

// Keep the longest start of `prompt` that is still valid here; returns how many rows that is.
int Session::reuse(const std::vector<int32_t> & prompt) {
    int n = 0;
    const int most = static_cast<int>(std::min(prompt.size() - 1, cached_.size()));
    while (n < most && prompt[static_cast<size_t>(n)] == cached_[static_cast<size_t>(n)]) {
        ++n;
    }
    if (generation_.no_reuse) {
        n = 0;
    }
    // Rows without draft context would leave the draft blind.
    if (wants_draft()) {
        n = std::min(n, n_draft_rows_);
    }
    if (passes_.has_recurrent() && (is_state_lost_ || n != n_past())) {
        // Recurrent state cannot be cut back; take the longest checkpoint that lies within the shared start.
        const Checkpoint * best = nullptr;
        for (const Checkpoint & checkpoint : checkpoints_) {
            if (checkpoint.n_tokens <= n && (!best || checkpoint.n_tokens > best->n_tokens) &&
                std::equal(checkpoint.tokens.begin(), checkpoint.tokens.end(), prompt.begin())) {
                best = &checkpoint;
            }
        }
        n = best ? best->n_tokens : 0;
        if (best) {
            passes_.recurrent().restore(best->state);
        } else {
            passes_.recurrent().clear();
        }
        is_state_lost_ = false;
    }
    cached_.resize(static_cast<size_t>(n));
    n_draft_rows_ = std::min(n_draft_rows_, n);
    return n;
}

void Session::begin(const std::vector<int32_t> & prompt, const dflash_generation & generation, dflash_begun & out) {
    const int context = passes_.shape().context_tokens;
    const int n_prompt = static_cast<int>(prompt.size());
    check_generation(generation);
    if (n_prompt < 1) {
        throw Error(DFLASH_BAD_ARGUMENT, "The prompt is empty.");
    }
    if (n_prompt >= context) {
        throw Error(DFLASH_BAD_ARGUMENT, format("The prompt has %d tokens; with a context of %d at most %d fit.", n_prompt, context, context - 1));
    }
    for (const int32_t token : prompt) {
        if (token < 0 || token >= target_.n_vocab()) {
            throw Error(DFLASH_BAD_ARGUMENT,
                        format("The prompt holds token %d; the vocabulary ends at %lld.", token, static_cast<long long>(target_.n_vocab() - 1)));
        }
    }
    passes_.compute().is_cancelled.store(false, std::memory_order_relaxed);
    generation_ = generation;
    prompt_ = prompt;
    out.n_prompt = n_prompt;
    out.n_reused = reuse(prompt);
    const int room = context - n_prompt;
    is_context_limit_ = generation.max_tokens == 0 || generation.max_tokens > room;
    max_tokens_ = is_context_limit_ ? room : generation.max_tokens;
    out.max_tokens = max_tokens_;
    sampler_.emplace(sampler_params(generation), static_cast<int>(target_.n_vocab()));
    sampler_->begin(prompt);
    n_reply_ = 0;
    root_ = prompt.back();
    phase_ = Phase::kPrefill;
}

void Session::append(const std::vector<int32_t> & tokens, bool has_logits, bool has_features) {
    is_state_lost_ = passes_.has_recurrent(); // until the pass has run to its end
    passes_.append(tokens, n_past(), has_logits, has_features);
    is_state_lost_ = false;
    if (has_features && n_draft_rows_ == n_past()) {
        n_draft_rows_ += static_cast<int>(tokens.size());
    }
    cached_.insert(cached_.end(), tokens.begin(), tokens.end());
}

bool Session::prefill(dflash_progress & out) {
    if (phase_ != Phase::kPrefill) {
        throw Error(DFLASH_BAD_STATE, "There is no prompt to prefill: begin a reply first.");
    }
    const int n_rows = static_cast<int>(prompt_.size()) - 1; // the last token is the first root
    if (n_past() < n_rows) {
        // Chunks end at multiples of the chunk size, wherever a reused start ended.
        const int chunk = passes_.shape().prefill_chunk;
        const int end = std::min(n_rows, (n_past() / chunk + 1) * chunk);
        try {
            append({prompt_.begin() + n_past(), prompt_.begin() + end}, false, wants_draft());
        } catch (...) {
            phase_ = Phase::kIdle;
            throw;
        }
    }
    out.n_done = static_cast<uint64_t>(n_past());
    out.n_total = static_cast<uint64_t>(n_rows);
    if (n_past() < n_rows) {
        return false;
    }
    save_checkpoint();
    phase_ = Phase::kDecode;
    return true;
}

// The end of a prompt is where the next turn, or another try of this one, will want to continue.
void Session::save_checkpoint() {
    if (!passes_.has_recurrent() || n_past() == 0) {
        return;
    }
    for (auto it = checkpoints_.begin(); it != checkpoints_.end(); ++it) {
        if (it->tokens == cached_) {
            checkpoints_.splice(checkpoints_.begin(), checkpoints_, it);
            return;
        }
    }
    checkpoints_.push_front({n_past(), cached_, {}});
    passes_.recurrent().save(checkpoints_.front().state);
    size_t bytes = 0;
    for (auto it = checkpoints_.begin(); it != checkpoints_.end();) {
        bytes += it->state.size();
        it = bytes > kCheckpointBytes && it != checkpoints_.begin() ? checkpoints_.erase(it) : std::next(it);
    }
}

Session::Plan Session::plan_step() {
    Plan plan;
    plan.tree = make_tree({root_}, {-1});
    if (!draft_) {
        return plan;
    }
    plan.reason = DFLASH_REASON_OFF;
    if (generation_.draft_mode == DFLASH_DRAFT_OFF) {
        return plan;
    }
    // A step commits one token more than it accepts.
    const int room = std::min(passes_.shape().max_rows - 1, max_tokens_ - n_reply_ - 1);
    if (room < 1 || n_draft_rows_ < n_past()) {
        plan.reason = DFLASH_REASON_NO_ROOM;
        return plan;
    }
    const bool is_auto = generation_.draft_mode == DFLASH_DRAFT_AUTO;
    plan.reason = DFLASH_REASON_BEST;
    if (is_auto) {
        const Tuner::Decision decision = tuner_.decide();
        if (decision == Tuner::Decision::kPlain) {
            plan.reason = DFLASH_REASON_PLAIN_FASTER;
            return plan;
        }
        plan.reason = decision == Tuner::Decision::kProbe ? DFLASH_REASON_PROBE : DFLASH_REASON_BEST;
    }

    const int64_t start = now_us();
    const int trained = draft_->config().block_size;
    const int block = std::clamp(generation_.block_size > 0 ? generation_.block_size : trained, 2, trained);
    const Marginals marginals = passes_.draft_block(root_, n_past(), block, std::min<int>(kCandidates, static_cast<int>(target_.n_vocab())), nullptr);
    plan.draft_us = now_us() - start;
    plan.has_drafted = true;

    TreeShape shape;
    shape.is_chain = generation_.draft_mode == DFLASH_DRAFT_CHAIN;
    shape.budget = generation_.tree_budget > 0 ? std::min(generation_.tree_budget, room) : shape.is_chain ? std::min(block - 1, room) : room;
    const bool is_fixed = shape.is_chain || generation_.tree_budget > 0;
    if (is_fixed) {
        plan.reason = DFLASH_REASON_FIXED;
        plan.tree = build_tree(root_, marginals, shape);
        return plan;
    }
    const Marginals calibrated = tuner_.calibrate(marginals);
    const Tree tree = build_tree(root_, calibrated, shape);
    if (!is_auto) { // who switches the draft on wants to see it work, also where it does not pay
        const int best = tuner_.choose_rows(tree, tree.n_rows(), &plan.expected_committed);
        plan.tree = first_rows(tree, std::max(best, kLeastRows));
        return plan;
    }
    shape.is_chain = true;
    shape.budget = std::min(block - 1, room);
    const Tree chain = build_tree(root_, calibrated, shape);
    bool is_chain = false;
    const int best = tuner_.choose_rows(tree, tree.n_rows(), &plan.expected_committed, passes_.has_recurrent() ? &chain : nullptr, &is_chain);
    plan.tree = first_rows(is_chain ? chain : tree, best);
    return plan;
}

bool Session::step(dflash_step & out) {
    if (phase_ != Phase::kDecode) {
        throw Error(DFLASH_BAD_STATE, "There is no reply to continue: begin one and prefill its prompt first.");
    }
    const int64_t start = now_us();
    try {
        Plan plan = plan_step();
        const Tree & tree = plan.tree;
        const int64_t verify_start = now_us();
        const bool needs_logits = sampler_->params().needs_logits() || generation_.want_logprobs;
        if (tree.n_nodes() == 0) {
            append({root_}, true, wants_draft());
        } else {
            passes_.verify(tree, n_past(), true);
        }
        if (!needs_logits) {
            passes_.argmax(); // waits for the device
        }
        const int64_t verify_end = now_us();

        std::vector<float> logprobs;
        const Accepted accepted = walk(tree, [&](int row, const std::vector<int32_t> & path) {
            if (!needs_logits) {
                return passes_.argmax()[static_cast<size_t>(row)];
            }
            const float * logits = passes_.logits(row);
            const int32_t token = sampler_->choose(logits, path);
            logprobs.push_back(generation_.want_logprobs ? static_cast<float>(log_probability(logits, static_cast<int>(target_.n_vocab()), token))
                                                         : std::numeric_limits<float>::quiet_NaN());
            return token;
        });
        logprobs.resize(accepted.tokens.size(), std::numeric_limits<float>::quiet_NaN());
        std::copy(logprobs.begin(), logprobs.end(), out.logprobs);
        out.draft_us = plan.draft_us;
        out.verify_us = verify_end - verify_start;

        const int64_t commit_start = now_us();
        finish_step(plan, accepted, out);
        const int64_t end = now_us();
        out.commit_us = end - commit_start;
        out.host_us = (end - start) - out.draft_us - out.verify_us - out.commit_us;

        StepOutcome outcome;
        outcome.n_rows = tree.n_rows();
        outcome.is_chain = passes_.is_chain_pass(tree);
        outcome.has_drafted = plan.has_drafted;
        outcome.draft_us = static_cast<double>(plan.draft_us);
        outcome.verify_us = static_cast<double>(end - start - plan.draft_us);
        // What a pass takes once, when it is built, says nothing about later ones.
        const double usual_us = outcome.is_chain ? tuner_.chain_us(outcome.n_rows) : tuner_.verify_us(outcome.n_rows);
        if (!passes_.is_warm() && usual_us > 0) {
            outcome.verify_us = std::min(outcome.verify_us, usual_us);
        }
        if (!passes_.is_draft_warm() && tuner_.draft_us() > 0) {
            outcome.draft_us = std::min(outcome.draft_us, tuner_.draft_us());
        }
        outcome.n_committed = out.n_committed;
        outcome.tree = plan.has_drafted ? &tree : nullptr;
        outcome.accepted_rows = &accepted.rows;
        outcome.accepted_tokens = &accepted.tokens;
        tuner_.observe(outcome);
    } catch (...) {
        phase_ = Phase::kIdle;
        throw;
    }
    if (out.finish != DFLASH_FINISH_NONE) {
        phase_ = Phase::kIdle;
        return true;
    }
    return false;
}

// Cut at a stop token or a limit, keep the rows of what remains, and fill the record.
void Session::finish_step(const Plan & plan, const Accepted & accepted, dflash_step & out) {
    const Tree & tree = plan.tree;
    const std::vector<int32_t> & stops = target_.stop_tokens();
    size_t n_committed = 0;
    out.finish = DFLASH_FINISH_NONE;
    while (n_committed < accepted.tokens.size() && out.finish == DFLASH_FINISH_NONE) {
        const int32_t token = accepted.tokens[n_committed++];
        if (!generation_.ignore_stop && std::binary_search(stops.begin(), stops.end(), token)) {
            out.finish = DFLASH_FINISH_STOP;
        } else if (n_reply_ + static_cast<int>(n_committed) == max_tokens_) {
            out.finish = is_context_limit_ ? DFLASH_FINISH_CONTEXT : DFLASH_FINISH_LENGTH;
        }
    }
    // Rows of the root and of every committed token but the last, which becomes the root.
    const std::vector<int32_t> rows(accepted.rows.begin(), accepted.rows.begin() + static_cast<ptrdiff_t>(n_committed));
    const std::vector<int32_t> tokens(accepted.tokens.begin(), accepted.tokens.begin() + static_cast<ptrdiff_t>(n_committed));
    if (tree.n_nodes() > 0) {
        is_state_lost_ = passes_.has_recurrent();
        passes_.commit(rows, n_past());
        is_state_lost_ = false;
        n_draft_rows_ = n_draft_rows_ == n_past() ? n_past() + static_cast<int>(rows.size()) : n_draft_rows_;
        cached_.push_back(root_);
        cached_.insert(cached_.end(), tokens.begin(), tokens.end() - 1);
    }
    root_ = tokens.back();
    sampler_->commit(tokens);
    n_reply_ += static_cast<int>(n_committed);

    out.n_drafted = tree.n_nodes();
    out.n_accepted = static_cast<int32_t>(accepted.rows.size()) - 1;
    out.n_committed = static_cast<int32_t>(n_committed);
    out.reason = plan.reason;
    out.expected_committed = plan.expected_committed;
    out.n_positions = n_past();
    out.n_reply = n_reply_;
    std::copy(tokens.begin(), tokens.end(), out.tokens);
    std::copy(tree.tokens.begin(), tree.tokens.end(), out.node_tokens);
    std::copy(tree.parents.begin(), tree.parents.end(), out.node_parents);
    std::copy(tree.path_logprobs.begin(), tree.path_logprobs.end(), out.node_logprobs);
    std::copy(accepted.rows.begin(), accepted.rows.end(), out.path);
}

void Session::probe_append(const std::vector<int32_t> & tokens, float * logits) {
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

Marginals Session::probe_draft(int32_t root, int k, float * hidden) {
    if (!draft_) {
        throw Error(DFLASH_BAD_STATE, "The session has no draft.");
    }
    if (n_draft_rows_ < n_past()) {
        throw Error(DFLASH_BAD_STATE, "The draft has not seen the whole context.");
    }
    passes_.compute().is_cancelled.store(false, std::memory_order_relaxed);
    return first_candidates(passes_.draft_block(root, n_past(), draft_->config().block_size, k, hidden), k);
}

void Session::probe_verify(const std::vector<int32_t> & tokens, const std::vector<int32_t> & parents, float * logits) {
    if (static_cast<int>(tokens.size()) > passes_.shape().max_rows) {
        throw Error(DFLASH_BAD_ARGUMENT, format("%zu rows; this session verifies at most %d.", tokens.size(), passes_.shape().max_rows));
    }
    phase_ = Phase::kIdle;
    passes_.compute().is_cancelled.store(false, std::memory_order_relaxed);
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
