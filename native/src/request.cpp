// Bounds and defaults; see request.h.
#include "request.h"

#include <algorithm>

namespace dflash {

SessionShape session_shape(const Target & target, const Draft * draft, const dflash_session_params & params) {
    SessionShape shape;
    if (params.context_tokens < 0 || params.prefill_chunk < 0 || params.max_nodes < 0 || params.max_nodes >= DFLASH_MAX_ROWS) {
        throw Error(DFLASH_BAD_ARGUMENT, format("A context of %d tokens, chunks of %d and trees of %d nodes make no session.", params.context_tokens,
                                                params.prefill_chunk, params.max_nodes));
    }
    shape.context_tokens = params.context_tokens > 0 ? params.context_tokens : std::min(target.context_tokens(), 8192);
    if (shape.context_tokens < 2 || shape.context_tokens > kMostContext) {
        throw Error(DFLASH_BAD_ARGUMENT, format("A context of %d tokens is out of range (2 to %d).", shape.context_tokens, kMostContext));
    }
    shape.prefill_chunk = params.prefill_chunk > 0 ? params.prefill_chunk : default_prefill_chunk(target.device());
    shape.max_rows = draft ? (params.max_nodes > 0 ? params.max_nodes : DFLASH_MAX_ROWS - 1) + 1 : params.max_nodes + 1;
    shape.kv_k = kv_ggml_type(params.kv_k, target.device());
    shape.kv_v = kv_ggml_type(params.kv_v, target.device());
    if (params.window < 0) {
        throw Error(DFLASH_BAD_ARGUMENT, format("A window of %d tokens makes no sense; 0 stands for all.", params.window));
    }
    shape.window = params.window < shape.context_tokens ? params.window : 0;
    if (params.n_tuning < 0 || params.n_tuning > (1 << 20) || (params.n_tuning > 0 && !params.tuning)) {
        throw Error(DFLASH_BAD_ARGUMENT, format("%d remembered numbers, or none where some are announced.", params.n_tuning));
    }
    return shape;
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

} // namespace dflash
