// What loading a pair would take, from the files' headers alone: the very graphs and caches of a session, without memory.
#pragma once

#include "model_file.h"

namespace dflash {

// `draft` may be nullptr; `draft_load` is where it goes. Throws what a load would throw.
void plan_pair(const std::shared_ptr<const ModelFile> & target, const std::shared_ptr<const ModelFile> & draft, const dflash_load_params & load,
               const dflash_load_params & draft_load, const dflash_session_params & session, dflash_plan & out);

} // namespace dflash
