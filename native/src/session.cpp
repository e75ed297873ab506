// The step and what surrounds it; see session.h.
#include "session.h"

#include <algorithm>
#include <limits>

#include "clock.h"
#include "log.h"
#include "request.h"

namespace dflash {

namespace {

constexpr int kLeastRows = 4; // of a tree that was asked for
constexpr double kMeasureShare = 0.01; // of the work, for measuring anew where the context has grown

std::vector<int> row_counts(const Device & device) {
    if (device.is_cpu) {
        return {1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16, 20, 24, 32, 40, 48, 56, 64};
    }
    return {1, 2, 4, 8, 12, 16, 24, 32, 48, 64};
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

Session::Session(const Target & target, const Draft * draft, const dflash_session_params & params)
    : target_(target),
      draft_(draft),
      passes_(target, draft, session_shape(target, draft, params)),
      tuner_(row_counts(target.device()), draft ? block_choices(*draft) : std::vector<int>()),
      prefixes_(prefix_shape(passes_, params.prefix_bytes)) {
    if (draft && &draft->target() != &target) {
        throw Error(DFLASH_BAD_ARGUMENT, "The draft was opened for another target.");
    }
    const std::vector<double> remembered(params.tuning, params.tuning + (params.tuning ? params.n_tuning : 0));
    const bool is_remembered = !remembered.empty() && tuner_.remember(remembered);
    if (!remembered.empty() && !is_remembered) {
        log_line(DFLASH_LOG_INFO, "What was remembered of an earlier load is not usable here; the device is measured again.");
    }
    measure_at_load(passes_, draft, tuner_, is_remembered);
    reset();
}

void Session::reset() {
    passes_.clear();
    cached_.clear();
    prompt_.clear();
    checkpoints_.clear(); // before the cache, which gives all their memory back
    prefixes_.clear();
    root_ = -1;
    n_draft_rows_ = 0;
    n_kept_ = 0;
    is_state_lost_ = false;
    phase_ = Phase::kIdle;
}

void Session::cancel() {
    passes_.compute().is_cancelled.store(true, std::memory_order_relaxed);
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
    require_tokens(prompt, "prompt");
    passes_.compute().is_cancelled.store(false, std::memory_order_relaxed);
    phase_ = Phase::kIdle; // what follows may fail with the timeline changed: then this session has to be begun again
    generation_ = generation;
    out.n_prompt = n_prompt;
    out.n_reused = reuse(prompt, out);
    prompt_ = prompt;
    plan_checkpoints();
    const int room = context - n_prompt;
    is_context_limit_ = generation.max_tokens == 0 || generation.max_tokens > room;
    max_tokens_ = is_context_limit_ ? room : generation.max_tokens;
    out.max_tokens = max_tokens_;
    sampler_.emplace(sampler_params(generation), static_cast<int>(target_.n_vocab()));
    sampler_->begin(prompt);
    n_reply_ = 0;
    root_ = prompt.back();
    if (generation.draft_mode == DFLASH_DRAFT_AUTO) {
        tuner_.begin_reply(prompt);
    }
    phase_ = Phase::kPrefill;
}

void Session::require_tokens(const std::vector<int32_t> & tokens, const char * what) const {
    for (const int32_t token : tokens) {
        if (token < 0 || token >= target_.n_vocab()) {
            throw Error(DFLASH_BAD_ARGUMENT,
                        format("The %s holds token %d; the vocabulary ends at %lld.", what, token, static_cast<long long>(target_.n_vocab() - 1)));
        }
    }
}

// What plain steps left undone: the draft's context of the rows that they computed.
void Session::complete_draft_context() {
    if (n_kept_ > 0) {
        passes_.write_kept(n_draft_rows_, n_kept_);
        n_draft_rows_ += n_kept_;
        n_kept_ = 0;
    }
}

// One row, the root's. As long as nothing is drafted its features are only kept.
void Session::step_plainly() {
    if (!wants_draft() || !has_draft_context()) {
        append({root_}, true, wants_draft());
        return;
    }
    if (n_kept_ == Passes::kMostKept) {
        complete_draft_context();
    }
    is_state_lost_ = passes_.has_recurrent();
    passes_.append_keeping(root_, n_past(), n_kept_);
    is_state_lost_ = false;
    ++n_kept_;
    cached_.push_back(root_);
}

void Session::append(const std::vector<int32_t> & tokens, bool has_logits, bool has_features) {
    if (has_features) {
        complete_draft_context();
    }
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
        int end = std::min(n_rows, (n_past() / chunk + 1) * chunk);
        const auto place = std::upper_bound(places_.begin(), places_.end(), n_past());
        end = place != places_.end() ? std::min(end, *place) : end;
        const int64_t start = now_us();
        try {
            append({prompt_.begin() + n_past(), prompt_.begin() + end}, false, wants_draft());
            work_us_ += static_cast<double>(now_us() - start);
        } catch (...) {
            phase_ = Phase::kIdle;
            throw;
        }
        if (std::binary_search(places_.begin(), places_.end(), n_past())) {
            save_checkpoint();
        }
    }
    out.n_done = static_cast<uint64_t>(n_past());
    out.n_total = static_cast<uint64_t>(n_rows);
    if (n_past() < n_rows) {
        return false;
    }
    save_checkpoint(); // where the next turn, or another try of this one, will want to continue
    phase_ = Phase::kDecode;
    return true;
}

// Times change with the context. Where it has entered another range some are taken again, as far as that is cheap.
void Session::follow_context() {
    const bool is_new = tuner_.times().set_context(n_past());
    if (!is_new || !draft_ || generation_.draft_mode != DFLASH_DRAFT_AUTO || !has_draft_context()) {
        return;
    }
    complete_draft_context();
    measure_us_ += measure_here(passes_, *draft_, tuner_.times(), root_, n_past(), kMeasureShare * work_us_ - measure_us_);
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
    if (room < 1 || !has_draft_context()) {
        plan.reason = DFLASH_REASON_NO_ROOM;
        return plan;
    }
    plan.reason = DFLASH_REASON_BEST;
    if (generation_.draft_mode == DFLASH_DRAFT_AUTO) {
        const Tuner::Decision decision = tuner_.decide();
        plan.is_own = true;
        if (decision == Tuner::Decision::kPlain || decision == Tuner::Decision::kMeasure) {
            plan.reason = decision == Tuner::Decision::kPlain ? DFLASH_REASON_PLAIN_FASTER : DFLASH_REASON_MEASURE;
            plan.expected_committed = 1;
            plan.expected_us = tuner_.times().verify_us(1);
            return plan;
        }
        plan.reason = decision == Tuner::Decision::kProbe ? DFLASH_REASON_PROBE : DFLASH_REASON_BEST;
    }
    draft_and_choose(plan, room);
    return plan;
}

// One draft pass, and what of it is verified.
void Session::draft_and_choose(Plan & plan, int room) {
    const int trained = draft_->config().block_size;
    const int most = std::clamp(generation_.block_size > 0 ? generation_.block_size : trained, 2, trained);
    plan.block_size = plan.is_own && generation_.block_size == 0 ? tuner_.choose_block(most) : most;
    int64_t start = now_us();
    if (n_kept_ > 0) {
        complete_draft_context();
        passes_.compute().wait();
        plan.context_us = now_us() - start;
        start = now_us();
    }
    const Marginals marginals = passes_.draft_block(root_, n_past(), plan.block_size, std::min<int>(kCandidates, static_cast<int>(target_.n_vocab())), nullptr);
    plan.draft_us = now_us() - start;

    TreeShape shape;
    shape.is_chain = generation_.draft_mode == DFLASH_DRAFT_CHAIN;
    const int chain_budget = std::min(plan.block_size - 1, room);
    shape.budget = generation_.tree_budget > 0 ? std::min(generation_.tree_budget, room) : shape.is_chain ? chain_budget : room;
    if (shape.is_chain || generation_.tree_budget > 0) {
        plan.reason = DFLASH_REASON_FIXED;
        plan.is_own = false;
        plan.tree = build_tree(root_, marginals, shape);
        return;
    }
    const Marginals calibrated = tuner_.calibrate(marginals, plan.block_size);
    const Tree tree = build_tree(root_, calibrated, shape);
    std::optional<Tree> chain;
    if (plan.is_own && passes_.has_recurrent()) {
        shape.is_chain = true;
        shape.budget = chain_budget;
        chain = build_tree(root_, calibrated, shape);
    }
    const Tuner::Choice choice = tuner_.choose(tree, chain ? &*chain : nullptr, tree.n_rows(), plan.block_size);
    // Who switches the draft on wants to see it work, also where it does not pay.
    plan.tree = first_rows(choice.is_chain ? *chain : tree, plan.is_own ? choice.n_rows : std::max(choice.n_rows, kLeastRows));
    plan.expected_committed = choice.expected_committed;
    plan.expected_us = choice.expected_us;
    plan.reason = choice.is_measuring && plan.reason == DFLASH_REASON_BEST ? DFLASH_REASON_MEASURE : plan.reason;
}

bool Session::step(dflash_step & out) {
    run_proposal();
    return finish_proposal(out);
}

// The first half of a step: draft, verify, choose.
void Session::run_proposal() {
    if (phase_ != Phase::kDecode) {
        throw Error(DFLASH_BAD_STATE, "There is no reply to continue: begin one and prefill its prompt first.");
    }
    phase_ = Phase::kIdle; // should anything fail
    follow_context();
    const int64_t start = now_us();
    proposal_ = {plan_step(), {}, {}, 0, 0};
    const Tree & tree = proposal_.plan.tree;
    const int64_t verify_start = now_us();
    const bool needs_logits = sampler_->params().needs_logits() || generation_.want_logprobs;
    if (tree.n_nodes() == 0) {
        step_plainly();
    } else {
        passes_.verify(tree, n_past(), true);
    }
    if (!needs_logits) {
        passes_.argmax(); // waits for the device
    }
    proposal_.verify_us = now_us() - verify_start;
    std::vector<float> & logprobs = proposal_.logprobs;
    proposal_.accepted = walk(tree, [&](int row, const std::vector<int32_t> & path) {
        if (!needs_logits) {
            return passes_.argmax()[static_cast<size_t>(row)];
        }
        const float * logits = passes_.logits(row);
        const int32_t token = sampler_->choose(logits, path);
        logprobs.push_back(generation_.want_logprobs ? static_cast<float>(log_probability(logits, static_cast<int>(target_.n_vocab()), token))
                                                     : std::numeric_limits<float>::quiet_NaN());
        return token;
    });
    logprobs.resize(proposal_.accepted.tokens.size(), std::numeric_limits<float>::quiet_NaN());
    proposal_.step_us = now_us() - start;
    phase_ = Phase::kProposed;
}

// The second half: commit what the proposal holds, and tell how it went.
bool Session::finish_proposal(dflash_step & out) {
    phase_ = Phase::kIdle; // should anything fail
    const Accepted & accepted = proposal_.accepted;
    std::copy(proposal_.logprobs.begin(), proposal_.logprobs.end(), out.logprobs);
    out.draft_us = proposal_.plan.draft_us;
    out.verify_us = proposal_.verify_us;

    const int64_t commit_start = now_us();
    finish_step(proposal_.plan, accepted, out);
    out.commit_us = now_us() - commit_start;
    const int64_t step_us = proposal_.step_us + out.commit_us;
    out.host_us = step_us - out.draft_us - out.verify_us - out.commit_us;
    work_us_ += static_cast<double>(step_us);
    if (proposal_.is_free) {
        tell_tuner(proposal_.plan, accepted, out);
    }
    phase_ = out.finish == DFLASH_FINISH_NONE ? Phase::kDecode : Phase::kIdle;
    return out.finish != DFLASH_FINISH_NONE;
}

void Session::tell_tuner(const Plan & plan, const Accepted & accepted, const dflash_step & record) {
    const StepTimes & times = tuner_.times();
    StepOutcome outcome;
    outcome.n_rows = plan.tree.n_rows();
    outcome.is_chain = passes_.is_chain_pass(plan.tree);
    outcome.block_size = plan.block_size;
    outcome.is_own = plan.is_own;
    outcome.draft_us = static_cast<double>(record.draft_us);
    outcome.verify_us = static_cast<double>(record.verify_us + record.commit_us + record.host_us - plan.context_us);
    // What a pass takes once, when it is built, says nothing about later ones.
    const double usual_us = outcome.is_chain ? times.chain_us(outcome.n_rows) : times.verify_us(outcome.n_rows);
    if (!passes_.is_warm() && usual_us > 0) {
        outcome.verify_us = std::min(outcome.verify_us, usual_us);
    }
    const double usual_draft_us = times.draft_us(plan.block_size);
    if (!passes_.is_draft_warm() && usual_draft_us > 0) {
        outcome.draft_us = std::min(outcome.draft_us, usual_draft_us);
    }
    outcome.n_committed = record.n_committed;
    outcome.tree = plan.block_size > 0 ? &plan.tree : nullptr;
    outcome.accepted_rows = &accepted.rows;
    outcome.accepted_tokens = &accepted.tokens;
    tuner_.observe(outcome);
    tuner_.hear({record.tokens, record.tokens + record.n_committed});
}

// Cut at a stop token or a limit, keep the rows of what remains, and fill the record.
void Session::finish_step(const Plan & plan, const Accepted & accepted, dflash_step & out) {
    const Tree & tree = plan.tree;
    const size_t n_committed = n_until_end(accepted.tokens, &out.finish);
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
    out.block_size = plan.block_size;
    out.expected_committed = static_cast<float>(plan.expected_committed);
    out.expected_us = static_cast<float>(plan.expected_us);
    out.plain_us = static_cast<float>(tuner_.times().verify_us(1));
    out.speed_up = static_cast<float>(tuner_.measured_speed_up());
    out.n_positions = n_past();
    out.n_reply = n_reply_;
    std::copy(tokens.begin(), tokens.end(), out.tokens);
    std::copy(tree.tokens.begin(), tree.tokens.end(), out.node_tokens);
    std::copy(tree.parents.begin(), tree.parents.end(), out.node_parents);
    std::copy(tree.path_logprobs.begin(), tree.path_logprobs.end(), out.node_logprobs);
    std::copy(accepted.rows.begin(), accepted.rows.end(), out.path);
}

} // namespace dflash
