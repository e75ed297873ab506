// The GGUF container: one file, or all the parts of a split model, into a ModelFile. Only model_file.cpp calls this.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "model_file.h"

namespace dflash {

class GgufReader {
  public:
    static bool is_gguf(const Mapping & mapping);

    // Fill `file` from the GGUF at `path`, already mapped. When it is a part of a split model, all parts are opened.
    static void read(const std::string & path, std::shared_ptr<const Mapping> mapping, ModelFile & file);

  private:
    // `opened` is the part at `path`, `values` its metadata.
    static void read_parts(const std::string & path, const std::shared_ptr<const Mapping> & opened, const std::map<std::string, Value> & values,
                           ModelFile & file);
};

} // namespace dflash
