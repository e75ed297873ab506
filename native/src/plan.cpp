// Planning; see plan.h.
#include "plan.h"

#include <algorithm>

#include "session.h"

namespace dflash {

namespace {

constexpr int kStep = 256; // the caches grow in these steps

// Left free for the desktop and for what drivers take beside our buffers.
uint64_t reserve_of(const Device & device, uint64_t total_bytes) {
    const uint64_t least = device.is_cpu ? 512u << 20 : 256u << 20;
    return std::max(least, total_bytes / 50);
}

} // namespace

void plan_pair(const std::shared_ptr<const ModelFile> & target_file, const std::shared_ptr<const ModelFile> & draft_file, const dflash_load_params & load,
               const dflash_session_params & session, dflash_plan & out) {
    dflash_device info = {};
    info.size = sizeof(info);
    describe_device(load.device, info);
    const Device device = device_at(load.device);
    const std::unique_ptr<Target> target = Target::open(target_file, device, load.n_threads);
    target->weights().pretend();
    std::unique_ptr<Draft> draft;
    if (draft_file) {
        draft = std::make_unique<Draft>(draft_file, *target);
        draft->weights().pretend();
    }
    const auto memory_of = [&](int context_tokens) {
        dflash_session_params params = session;
        params.context_tokens = context_tokens;
        dflash_memory memory = {};
        Passes(*target, draft.get(), Session::shape_of(*target, draft.get(), params), true).fill_memory(memory);
        return memory;
    };
    const auto total_of = [](const dflash_memory & memory) {
        return memory.target_weights_bytes + memory.draft_weights_bytes + memory.kv_cache_bytes + memory.recurrent_bytes + memory.draft_kv_bytes +
               memory.compute_bytes;
    };
    out.free_bytes = info.free_bytes;
    out.reserve_bytes = reserve_of(device, info.total_bytes);
    const uint64_t available = out.free_bytes > out.reserve_bytes ? out.free_bytes - out.reserve_bytes : 0;
    const auto fits = [&](int context_tokens) { return total_of(memory_of(context_tokens)) <= available; };

    // Memory grows with the context, so the largest that fits is found by halving.
    int low = 0; // in steps; known to fit, or 0
    int high = (target->context_tokens() + kStep - 1) / kStep + 1;
    while (high - low > 1) {
        const int middle = low + (high - low) / 2;
        (fits(std::min(middle * kStep, target->context_tokens())) ? low : high) = middle;
    }
    out.max_context_tokens = std::min(low * kStep, target->context_tokens());
    out.context_tokens = session.context_tokens > 0 ? session.context_tokens : std::max(out.max_context_tokens, std::min(kStep, target->context_tokens()));

    const dflash_memory memory = memory_of(out.context_tokens);
    out.target_weights_bytes = memory.target_weights_bytes;
    out.draft_weights_bytes = memory.draft_weights_bytes;
    out.kv_cache_bytes = memory.kv_cache_bytes;
    out.recurrent_bytes = memory.recurrent_bytes;
    out.draft_kv_bytes = memory.draft_kv_bytes;
    out.compute_bytes = memory.compute_bytes;
    out.total_bytes = total_of(memory);
    out.fits = out.total_bytes <= available ? 1 : 0;
}

} // namespace dflash
