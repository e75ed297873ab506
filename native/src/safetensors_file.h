// DFlash drafts as they are published: model.safetensors beside a config.json. They become a ModelFile that looks like a
// GGUF of architecture "dflash", so that nothing above knows the difference. Only model_file.cpp calls this.
#pragma once

#include <memory>
#include <string>

#include "model_file.h"

namespace dflash {

class SafetensorsReader {
  public:
    static bool is_safetensors(const Mapping & mapping);

    // Fill `file` from the weights at `path`, already mapped, and the config.json beside them.
    static void read(const std::string & path, const std::shared_ptr<const Mapping> & mapping, ModelFile & file);

  private:
    static void read_tensors(const Mapping & mapping, int64_t n_layers, ModelFile & file);
};

} // namespace dflash
