// C wrappers over the pure parts of the engine (tree, sampler, tuner), for the tests: compiled by conftest.py, never shipped.
// Arrays are the caller's and large enough; a function that can fail returns -1 and leaves the reason in probe_error.

#include <algorithm>
#include <cstdint>
#include <exception>
#include <string>
#include <vector>

#include "sampler.h"
#include "thread_count.h"
#include "tree.h"
#include "tuner.h"

using namespace dflash;

namespace {

std::string g_error;

template <typename F> int32_t guarded(const F & body) {
    try {
        return body();
    } catch (const std::exception & error) {
        g_error = error.what();
        return -1;
    }
}

Marginals marginals_from(int32_t n_depths, int32_t k, const int32_t * ids, const float * logprobs) {
    Marginals marginals;
    marginals.n_depths = n_depths;
    marginals.k = k;
    marginals.ids.assign(ids, ids + n_depths * k);
    marginals.logprobs.assign(logprobs, logprobs + n_depths * k);
    return marginals;
}

// `logprobs` of the table are those after the first candidate of each depth.
Marginals conditionals_from(int32_t n_depths, int32_t k, const int32_t * ids, const float * conditional, int32_t n_conditional) {
    Marginals marginals = marginals_from(n_depths, k, ids, std::vector<float>(static_cast<size_t>(n_depths * k), -1.0f).data());
    marginals.conditional.assign(conditional, conditional + n_conditional);
    return marginals;
}

void write_tree(const Tree & tree, int32_t * tokens, int32_t * parents, int32_t * depths, int32_t * ranks, float * logprobs) {
    std::copy(tree.tokens.begin(), tree.tokens.end(), tokens);
    std::copy(tree.parents.begin(), tree.parents.end(), parents);
    std::copy(tree.depths.begin(), tree.depths.end(), depths);
    std::copy(tree.ranks.begin(), tree.ranks.end(), ranks);
    std::copy(tree.path_logprobs.begin(), tree.path_logprobs.end(), logprobs);
}

} // namespace

extern "C" {

const char * probe_error() {
    return g_error.c_str();
}

// ---- tree -------------------------------------------------------------------------------------------------------

struct ProbeShape {
    int32_t budget;
    int32_t is_chain;
};

// Returns the number of rows.
int32_t probe_build_tree(int32_t root, int32_t n_depths, int32_t k, const int32_t * ids, const float * logprobs, const ProbeShape * shape, int32_t * tokens,
                         int32_t * parents, int32_t * depths, int32_t * ranks, float * path_logprobs) {
    return guarded([&] {
        TreeShape wanted;
        wanted.budget = shape->budget;
        wanted.is_chain = shape->is_chain != 0;
        const Tree tree = build_tree(root, marginals_from(n_depths, k, ids, logprobs), wanted);
        write_tree(tree, tokens, parents, depths, ranks, path_logprobs);
        return tree.n_rows();
    });
}

// The same with conditionals, n_depths x k x k.
int32_t probe_build_conditional_tree(int32_t root, int32_t n_depths, int32_t k, const int32_t * ids, const float * conditional, int32_t n_conditional,
                                     const ProbeShape * shape, int32_t * tokens, int32_t * parents, int32_t * depths, int32_t * ranks, float * path_logprobs) {
    return guarded([&] {
        TreeShape wanted;
        wanted.budget = shape->budget;
        wanted.is_chain = shape->is_chain != 0;
        const Tree tree = build_tree(root, conditionals_from(n_depths, k, ids, conditional, n_conditional), wanted);
        write_tree(tree, tokens, parents, depths, ranks, path_logprobs);
        return tree.n_rows();
    });
}

// Fills depths and ranks, n of each.
int32_t probe_make_tree(const int32_t * tokens, const int32_t * parents, int32_t n, int32_t * depths, int32_t * ranks) {
    return guarded([&] {
        const Tree tree = make_tree({tokens, tokens + n}, {parents, parents + n});
        std::copy(tree.depths.begin(), tree.depths.end(), depths);
        std::copy(tree.ranks.begin(), tree.ranks.end(), ranks);
        return tree.n_rows();
    });
}

// choices[row] is the target's token after that row. Fills rows, tokens and the length of the path seen at each call.
int32_t probe_walk(const int32_t * tokens, const int32_t * parents, int32_t n, const int32_t * choices, int32_t * rows, int32_t * out, int32_t * path_lengths) {
    return guarded([&] {
        int32_t n_calls = 0;
        const Accepted accepted = walk(make_tree({tokens, tokens + n}, {parents, parents + n}), [&](int row, const std::vector<int32_t> & path) {
            path_lengths[n_calls++] = static_cast<int32_t>(path.size());
            return choices[row];
        });
        std::copy(accepted.rows.begin(), accepted.rows.end(), rows);
        std::copy(accepted.tokens.begin(), accepted.tokens.end(), out);
        return static_cast<int32_t>(accepted.rows.size());
    });
}

// ---- sampler ----------------------------------------------------------------------------------------------------

struct ProbeSampling {
    float temperature;
    int32_t top_k;
    float top_p;
    float min_p;
    float repeat_penalty;
    float frequency_penalty;
    float presence_penalty;
    int32_t penalty_window;
    uint64_t seed;
};

Sampler * probe_sampler_open(const ProbeSampling * sampling, int32_t n_vocab) {
    SamplerParams params;
    params.temperature = sampling->temperature;
    params.top_k = sampling->top_k;
    params.top_p = sampling->top_p;
    params.min_p = sampling->min_p;
    params.repeat_penalty = sampling->repeat_penalty;
    params.frequency_penalty = sampling->frequency_penalty;
    params.presence_penalty = sampling->presence_penalty;
    params.penalty_window = sampling->penalty_window;
    params.seed = sampling->seed;
    return new Sampler(params, n_vocab);
}

void probe_sampler_close(Sampler * sampler) {
    delete sampler;
}

void probe_sampler_begin(Sampler * sampler, const int32_t * history, int32_t n) {
    sampler->begin({history, history + n});
}

int32_t probe_sampler_choose(const Sampler * sampler, const float * logits, const int32_t * path, int32_t n) {
    return guarded([&] { return sampler->choose(logits, {path, path + n}); });
}

void probe_sampler_commit(Sampler * sampler, const int32_t * tokens, int32_t n) {
    sampler->commit({tokens, tokens + n});
}

// n draws from the same logits, each committed when is_committed; the penalties then see it.
int32_t probe_sampler_draws(Sampler * sampler, const float * logits, int32_t n, int32_t * out) {
    return guarded([&] {
        for (int32_t i = 0; i < n; ++i) {
            out[i] = sampler->choose(logits, {});
            sampler->commit({out[i]});
        }
        return n;
    });
}

double probe_log_probability(const float * logits, int32_t n_vocab, int32_t token) {
    return log_probability(logits, n_vocab, token);
}

double probe_uniform(uint64_t seed, uint64_t index) {
    return uniform_draw(seed, index);
}

// ---- tuner ------------------------------------------------------------------------------------------------------

// `blocks` may be empty.
Tuner * probe_tuner_open(const int32_t * buckets, int32_t n, const int32_t * blocks, int32_t n_blocks) {
    return new Tuner({buckets, buckets + n}, {blocks, blocks + n_blocks});
}

void probe_tuner_close(Tuner * tuner) {
    delete tuner;
}

void probe_tuner_set_verify_us(Tuner * tuner, int32_t n_rows, double us) {
    tuner->times().set_verify_us(n_rows, us);
}

void probe_tuner_set_draft_us(Tuner * tuner, int32_t block_size, double us) {
    tuner->times().set_draft_us(block_size, us);
}

int32_t probe_tuner_set_context(Tuner * tuner, int32_t n_past) {
    return tuner->times().set_context(n_past) ? 1 : 0;
}

double probe_tuner_verify_us(const Tuner * tuner, int32_t n_rows) {
    return tuner->times().verify_us(n_rows);
}

double probe_tuner_draft_us(const Tuner * tuner, int32_t block_size) {
    return tuner->times().draft_us(block_size);
}

int32_t probe_tuner_choose_block(Tuner * tuner, int32_t most) {
    return tuner->choose_block(most);
}

void probe_tuner_begin_reply(Tuner * tuner, const int32_t * prompt, int32_t n) {
    tuner->begin_reply({prompt, prompt + n});
}

void probe_tuner_hear(Tuner * tuner, const int32_t * tokens, int32_t n) {
    tuner->hear({tokens, tokens + n});
}

// Fills `out` when there is room; returns how many numbers there are.
int32_t probe_tuner_remembered(const Tuner * tuner, double * out, int32_t capacity) {
    const std::vector<double> values = tuner->remembered();
    if (static_cast<int32_t>(values.size()) <= capacity) {
        std::copy(values.begin(), values.end(), out);
    }
    return static_cast<int32_t>(values.size());
}

int32_t probe_tuner_remember(Tuner * tuner, const double * values, int32_t n) {
    return tuner->remember({values, values + n}) ? 1 : 0;
}

// 0: draft, 1: probe, 2: plain, 3: plain to measure.
int32_t probe_tuner_decide(Tuner * tuner) {
    return static_cast<int32_t>(tuner->decide());
}

void probe_tuner_calibrate(Tuner * tuner, int32_t n_depths, int32_t k, const int32_t * ids, const float * logprobs, int32_t * out_ids, float * out_logprobs) {
    const Marginals calibrated = tuner->calibrate(marginals_from(n_depths, k, ids, logprobs), n_depths + 1);
    std::copy(calibrated.ids.begin(), calibrated.ids.end(), out_ids);
    std::copy(calibrated.logprobs.begin(), calibrated.logprobs.end(), out_logprobs);
}

void probe_tuner_calibrate_conditional(Tuner * tuner, int32_t n_depths, int32_t k, const int32_t * ids, const float * conditional, float * out) {
    const Marginals calibrated = tuner->calibrate(conditionals_from(n_depths, k, ids, conditional, n_depths * k * k), n_depths + 1);
    std::copy(calibrated.conditional.begin(), calibrated.conditional.end(), out);
}

// Calibrate, build, verify all, and tell the outcome; truth has n_depths tokens.
void probe_tuner_conditional_step(Tuner * tuner, int32_t n_depths, int32_t k, const int32_t * ids, const float * conditional, const int32_t * truth,
                                  int32_t budget) {
    TreeShape shape;
    shape.budget = budget;
    const Tree tree = build_tree(0, tuner->calibrate(conditionals_from(n_depths, k, ids, conditional, n_depths * k * k), n_depths + 1), shape);
    const Accepted accepted = walk(tree, [&](int row, const std::vector<int32_t> &) {
        const int32_t depth = tree.depths[static_cast<size_t>(row)];
        return depth < n_depths ? truth[depth] : -1;
    });
    StepOutcome outcome;
    outcome.n_rows = tree.n_rows();
    outcome.block_size = n_depths + 1;
    outcome.is_own = false;
    outcome.n_committed = static_cast<int32_t>(accepted.rows.size());
    outcome.tree = &tree;
    outcome.accepted_rows = &accepted.rows;
    outcome.accepted_tokens = &accepted.tokens;
    tuner->observe(outcome);
}

double probe_tuner_measured_speed_up(const Tuner * tuner) {
    return tuner->measured_speed_up();
}

// What the target would choose and how long its passes take.
struct ProbeStep {
    int32_t n_depths;
    int32_t k;
    const int32_t * ids;
    const float * logprobs;
    const int32_t * truth; // n_depths: the token that is right after the right ones before it
    int32_t max_rows;
    int32_t is_mute; // do not tell the tuner the target's tokens
    double draft_us;
    const double * verify_us; // by row count, max_rows + 1
    // Filled:
    int32_t n_rows;
    int32_t n_committed;
    double us;
    float expected;
};

// One step the way a session runs it: calibrate, build, choose, verify, observe.
void probe_tuner_draft_step(Tuner * tuner, ProbeStep * step) {
    TreeShape shape;
    shape.budget = step->max_rows - 1;
    const int32_t block_size = step->n_depths + 1;
    const Tree full = build_tree(0, tuner->calibrate(marginals_from(step->n_depths, step->k, step->ids, step->logprobs), block_size), shape);
    const Tuner::Choice choice = tuner->choose(full, nullptr, step->max_rows, block_size);
    step->n_rows = choice.n_rows;
    step->expected = static_cast<float>(choice.expected_committed);
    Tree tree = full;
    const auto n = static_cast<size_t>(step->n_rows);
    tree.tokens.resize(n);
    tree.parents.resize(n);
    tree.depths.resize(n);
    tree.ranks.resize(n);
    tree.path_logprobs.resize(n);
    const Accepted accepted = walk(tree, [&](int row, const std::vector<int32_t> &) {
        const int32_t depth = tree.depths[static_cast<size_t>(row)];
        return depth < step->n_depths ? step->truth[depth] : -1;
    });
    step->n_committed = static_cast<int32_t>(accepted.rows.size());
    step->us = step->draft_us + step->verify_us[step->n_rows];
    StepOutcome outcome;
    outcome.n_rows = step->n_rows;
    outcome.block_size = block_size;
    outcome.draft_us = step->draft_us;
    outcome.verify_us = step->verify_us[step->n_rows];
    outcome.n_committed = step->n_committed;
    outcome.tree = &tree;
    outcome.accepted_rows = &accepted.rows;
    outcome.accepted_tokens = step->is_mute != 0 ? nullptr : &accepted.tokens;
    tuner->observe(outcome);
}

void probe_tuner_plain_step(Tuner * tuner, double us) {
    StepOutcome outcome;
    outcome.verify_us = us;
    outcome.n_committed = 1;
    tuner->observe(outcome);
}

ThreadCount * probe_threads_new(int32_t most) {
    return new ThreadCount(most);
}

void probe_threads_free(ThreadCount * threads) {
    delete threads;
}

int32_t probe_threads_observe(ThreadCount * threads, double wall_us, double cpu_us) {
    threads->observe(wall_us, cpu_us);
    return threads->count();
}

} // extern "C"
