// What a model file is, whether this engine runs it, and whether a draft fits a target. Reads metadata only.
#pragma once

#include "model_file.h"

namespace dflash {

void describe_file(const std::shared_ptr<const ModelFile> & file, dflash_file_info & out);
// Throws UNSUPPORTED with the reason when the draft does not fit the target.
void require_pair(const std::shared_ptr<const ModelFile> & target, const std::shared_ptr<const ModelFile> & draft);

} // namespace dflash
