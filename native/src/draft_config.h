// What a draft file says about itself, whichever program wrote it, and whether it fits a target.
// Dialects: llama.cpp's converter ("dflash", keys `dflash.NAME`), Lucebox ("qwen35-dflash-draft", "dflash-draft" and
// others, keys `ARCHITECTURE.dflash.NAME`, tensors `dflash.NAME`); z-lab's safetensors arrive in the first one's names.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <vector>

#include "model_file.h"

namespace dflash {

enum class DraftKind {
    kDFlash,  // every position on its own
    kDFlash2, // convolutions along the block, and a selector: how well a token follows the one before
    kDSpark,  // a Markov head: the token before shifts all logits; mostly with a confidence head
};

struct DraftConfig {
    std::string prefix; // "dflash." or the writer's own
    DraftKind kind = DraftKind::kDFlash;
    int n_layers = 0;
    int64_t n_embd = 0;
    int64_t n_head = 0;
    int64_t n_head_kv = 0;
    int64_t head_dim = 0;
    int64_t n_ff = 0;
    float epsilon = 1e-6f;
    int32_t mask_token = -1;

    int block_size = 0;           // the root and the tokens drafted after it
    bool is_anchor_first = false; // the root's own row drafts the first token; otherwise it drafts nothing
    int first_row() const { return is_anchor_first ? 0 : 1; }                   // that drafts
    int n_rows(int block) const { return is_anchor_first ? block - 1 : block; } // of a pass over a block of that size

    int n_features = 0;              // target layers read
    std::vector<int> feature_layers; // 0-based, by their output, in the order of the fc's input; empty when the file is silent
    bool is_context_normed = false;  // context rows pass each layer's norm, as block rows do

    int sliding_window = 0;         // 0: none
    std::vector<bool> is_sliding;   // per layer
    bool is_causal = false;         // full layers: block rows see earlier block rows only
    bool is_sliding_causal = false; // sliding layers likewise

    float embedding_scale = 1;
    float attention_scale = 0; // of the products of queries and keys
    float value_scale = 1;     // of what attention reads
    float logit_scale = 1;
    float logit_softcap = 0; // 0: none
    bool is_gelu = false;    // else SiLU

    int64_t conv_taps = 0; // DFlash2
    int64_t conv_group = 0;
    int64_t rank = 0; // of the selector's, or the Markov head's tables
    int selector_top_k = 0;
    int64_t confidence_width = 0; // DSpark: n_embd, or n_embd + rank, or 0 for none
};

bool is_draft_architecture(const std::string & architecture);

// The first of the names that `file` has a tensor for; the first one when it has none.
std::string tensor_name(const ModelFile & file, std::initializer_list<std::string> names);

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

// Throws UNSUPPORTED with the reason and both numbers when the draft was not made for such a target. Fills in the
// feature layers that early Lucebox files leave to the reader.
void require_fit(const ModelFile & draft, DraftConfig & config, const TargetFacts & target);

} // namespace dflash
