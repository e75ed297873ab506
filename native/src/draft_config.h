// What a draft file says about itself, whichever program wrote it, and whether it fits a target.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "model_file.h"

namespace dflash {

struct DraftConfig {
    std::string prefix; // "dflash." or the writer's own
    int n_layers = 0;
    int64_t n_embd = 0;
    int64_t n_head = 0;
    int64_t n_head_kv = 0;
    int64_t head_dim = 0;
    int64_t n_ff = 0;
    float epsilon = 1e-6f;
    int block_size = 0;          // positions per block, the root included
    int32_t mask_token = -1;
    std::vector<int> feature_layers; // 0-based target layers whose output is read, in the order of the fc's input
    int sliding_window = 0;      // 0: none
    std::vector<bool> is_sliding; // per layer
    bool is_causal = false;          // full layers: block rows see earlier block rows only
    bool is_sliding_causal = false;  // sliding layers likewise
    // Tensor names that differ between writers.
    std::string fc = "fc.weight";
    std::string feature_norm = "enc.output_norm.weight";
};

bool is_draft_architecture(const std::string & architecture);

// Throws BAD_FILE, or UNSUPPORTED for kinds of draft that this engine does not run.
DraftConfig read_draft_config(const ModelFile & file);

// What a draft has to agree on with its target.
struct TargetFacts {
    std::string label;
    int n_layers = 0;
    int64_t n_embd = 0;
    int64_t n_vocab = 0;
    const ModelFile * file = nullptr; // for the vocabulary's texts
};

// Throws UNSUPPORTED with the reason and both numbers when the draft was not made for such a target.
void require_fit(const ModelFile & draft, const DraftConfig & config, const TargetFacts & target);

} // namespace dflash
