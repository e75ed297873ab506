// The config.json of a published DFlash draft, read as the metadata of a GGUF of architecture "dflash".
#pragma once

#include <map>
#include <string>

#include "model_file.h"

namespace dflash {

// Reads config.json in `folder` (which ends in a slash or is ""). Throws BAD_FILE or UNSUPPORTED, naming key and value.
void read_hf_config(const std::string & folder, std::map<std::string, Value> & values);

} // namespace dflash
