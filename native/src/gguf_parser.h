// The GGUF format, versions 2 and 3, little-endian: from the bytes of one file to checked values and tensors.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "model_file.h"

namespace dflash {

// One GGUF file, parsed: a whole model or one part of a split one. Values and tensors point into the mapping.
struct GgufPart {
    std::map<std::string, Value> values;
    std::vector<TensorInfo> tensors;
};

// Parse a mapping that begins with the magic. Throws Error(BAD_FILE) with `label`, the file's name, and the key, tensor or byte at fault.
GgufPart parse_gguf(const std::string & label, const Mapping & mapping);

} // namespace dflash
