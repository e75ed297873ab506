// What a caller asks of a session and of a reply: checked, and with the values that zeros stand for. All throw BAD_ARGUMENT.
#pragma once

#include "passes.h"
#include "sampler.h"

namespace dflash {

// The sizes of a session; `draft` may be nullptr.
SessionShape session_shape(const Target & target, const Draft * draft, const dflash_session_params & params);

void check_generation(const dflash_generation & generation);

// How a reply samples; of a checked `generation`.
SamplerParams sampler_params(const dflash_generation & generation);

} // namespace dflash
