// Planning; see plan.h.
#include "plan.h"

#include <algorithm>
#include <optional>

#include "request.h"
#include "session.h"

namespace dflash {

namespace {

constexpr int kStep = 256; // the caches grow in these steps

// Left free for the desktop and for what drivers take beside our buffers.
uint64_t reserve_of(const Device & device, uint64_t total_bytes) {
    const uint64_t least = device.is_cpu ? 512u << 20 : 256u << 20;
    return std::max(least, total_bytes / 50);
}

// What a device has and how much of it may be used.
struct Room {
    uint64_t free_bytes = 0;
    uint64_t reserve_bytes = 0;
    bool holds(uint64_t bytes) const { return bytes + reserve_bytes <= free_bytes; }
};

Room room_on(const Device & device) {
    dflash_device info = {};
    info.size = sizeof(info);
    describe_device(device.index, info);
    return {info.free_bytes, reserve_of(device, info.total_bytes)};
}

uint64_t of_target(const dflash_memory & memory) {
    return memory.target_weights_bytes + memory.kv_cache_bytes + memory.recurrent_bytes + memory.compute_bytes;
}

uint64_t of_draft(const dflash_memory & memory) {
    return memory.draft_weights_bytes + memory.draft_kv_bytes + memory.draft_compute_bytes;
}

} // namespace

void plan_pair(const std::shared_ptr<const ModelFile> & target_file, const std::shared_ptr<const ModelFile> & draft_file, const dflash_load_params & load,
               const dflash_load_params & draft_load, const dflash_session_params & session, dflash_plan & out) {
    const Device device = device_at(load.device);
    const std::unique_ptr<Target> target = Target::open(target_file, device, load.n_threads);
    target->weights().pretend();
    std::unique_ptr<Draft> draft;
    if (draft_file) {
        draft = std::make_unique<Draft>(draft_file, *target, place_of(draft_load, *target));
        draft->pretend();
    }
    const auto planned = [&](int context_tokens, bool checks_support) {
        dflash_session_params params = session;
        params.context_tokens = context_tokens;
        SessionShape shape = session_shape(*target, draft.get(), params);
        shape.checks_support = checks_support;
        dflash_memory memory = {};
        Passes(*target, draft.get(), shape, true).fill_memory(memory);
        return memory;
    };
    planned(std::min(kStep, target->context_tokens()), true); // what does not run at all is refused here
    // Nothing where the device refuses: some take no tensor beyond a size, as a layer's keys of a very long context.
    const auto runnable = [&](int context_tokens) -> std::optional<dflash_memory> {
        try {
            return planned(context_tokens, true);
        } catch (const Error & error) {
            if (error.status() != DFLASH_UNSUPPORTED) {
                throw;
            }
            return std::nullopt;
        }
    };
    const Room room = room_on(device);
    const bool is_elsewhere = draft && draft->device().index != device.index;
    const Room draft_room = is_elsewhere ? room_on(draft->device()) : Room{};
    const auto fits = [&](const dflash_memory & memory) {
        return is_elsewhere ? room.holds(of_target(memory)) && draft_room.holds(of_draft(memory)) : room.holds(of_target(memory) + of_draft(memory));
    };

    // Memory grows with the context, so the largest that fits is found by halving.
    int low = 0; // in steps; known to fit, or 0
    int high = (target->context_tokens() + kStep - 1) / kStep + 1;
    while (high - low > 1) {
        const int middle = low + (high - low) / 2;
        const std::optional<dflash_memory> memory = runnable(std::min(middle * kStep, target->context_tokens()));
        (memory && fits(*memory) ? low : high) = middle;
    }
    out.max_context_tokens = std::min(low * kStep, target->context_tokens());
    out.context_tokens = session.context_tokens > 0 ? session.context_tokens : std::max(out.max_context_tokens, std::min(kStep, target->context_tokens()));

    const std::optional<dflash_memory> run = runnable(out.context_tokens);
    const dflash_memory memory = run ? *run : planned(out.context_tokens, false);
    out.target_weights_bytes = memory.target_weights_bytes;
    out.draft_weights_bytes = memory.draft_weights_bytes;
    out.kv_cache_bytes = memory.kv_cache_bytes;
    out.recurrent_bytes = memory.recurrent_bytes;
    out.draft_kv_bytes = memory.draft_kv_bytes;
    out.compute_bytes = memory.compute_bytes;
    out.draft_compute_bytes = memory.draft_compute_bytes;
    out.total_bytes = of_target(memory) + (is_elsewhere ? 0 : of_draft(memory));
    out.free_bytes = room.free_bytes;
    out.reserve_bytes = room.reserve_bytes;
    out.draft_total_bytes = is_elsewhere ? of_draft(memory) : 0;
    out.draft_free_bytes = draft_room.free_bytes;
    out.draft_reserve_bytes = draft_room.reserve_bytes;
    out.fits = run && fits(memory) ? 1 : 0;
}

} // namespace dflash
