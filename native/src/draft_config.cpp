// Reading draft metadata in the dialects that exist; see draft_config.h.
#include "draft_config.h"

#include <algorithm>
#include <cstring>

namespace dflash {

namespace {

using Integers = std::vector<int64_t>;

bool is_upstream(const ModelFile & file) {
    return file.architecture() == "dflash";
}

[[noreturn]] void unsupported(const ModelFile & file, const std::string & why) {
    throw Error(DFLASH_UNSUPPORTED, file.label() + ": " + why);
}

// Kinds of draft that look like a first-generation one and would run as one, silently worse.
void refuse_other_kinds(const ModelFile & file) {
    const auto has = [&](const char * name) { return file.tensor(name) != nullptr; };
    if (has("selector_hidden.weight") || has("dflash.selector.hproj.weight") || has("blk.0.attn_conv_base") || has("blk.0.attn_conv.base")) {
        unsupported(file, "it is a DFlash2 draft (dynamic convolutions and a selector), which this version does not run yet.");
    }
    if (has("markov_w1.weight") || has("dflash.dspark.markov.w1")) {
        unsupported(file, "it is a DSpark draft (with a Markov head), which this version does not run yet.");
    }
    if (has("dflash.domino.start") || has("dflash.domino.gru.weight_ih")) {
        unsupported(file, "it is a Domino draft (with a recurrent head), which this engine does not run.");
    }
    if (file.integer(file.architecture() + ".hyper_connection.count", 0, INT32_MAX).value_or(0) > 0) {
        unsupported(file, "it is a draft with hyper-connections (DeepSeek V4), which this engine does not run.");
    }
    for (const char * name : {"token_embd.weight", "output.weight", "d2t"}) {
        if (has(name)) {
            unsupported(file, std::string("it brings its own ") + name + "; this engine runs drafts that share the target's vocabulary and head.");
        }
    }
    if (has("blk.0.attn_sinks.weight") || has("blk.0.post_attention_norm.weight") || has("blk.0.attn_gate.weight") || has("dflash.aux_hidden_norm.0.weight")) {
        unsupported(file, "its layers have attention sinks, gates or extra norms, which this version does not run yet.");
    }
}

} // namespace

bool is_draft_architecture(const std::string & architecture) {
    return architecture == "dflash" || architecture == "dflash-draft" ||
           (architecture.size() > 13 && architecture.compare(architecture.size() - 13, 13, "-dflash-draft") == 0);
}

DraftConfig read_draft_config(const ModelFile & file) {
    if (!is_draft_architecture(file.architecture())) {
        file.refuse("general.architecture is '" + file.architecture() + "', which is not a DFlash draft.");
    }
    refuse_other_kinds(file);
    DraftConfig config;
    const std::string & prefix = config.prefix = file.architecture() + ".";
    // Writers put the DFlash keys at the top (upstream) or one level deeper (Lucebox).
    const std::string inner = is_upstream(file) ? prefix : prefix + "dflash.";
    config.n_layers = static_cast<int>(file.need_integer(prefix + "block_count", 1, 1024));
    config.n_embd = file.need_integer(prefix + "embedding_length", 1, 131072);
    config.n_head = file.need_integer(prefix + "attention.head_count", 1, 1024);
    config.n_head_kv = file.integer(prefix + "attention.head_count_kv", 1, 1024).value_or(config.n_head);
    config.head_dim = file.integer(prefix + "attention.key_length", 2, 1024).value_or(config.n_embd / config.n_head);
    if (config.n_head % config.n_head_kv != 0 || config.head_dim % 2 != 0 ||
        file.integer(prefix + "attention.value_length", 1, 1024).value_or(config.head_dim) != config.head_dim) {
        file.refuse(format("%sattention: %lld heads of %lld over %lld key-value heads make no sense.", prefix.c_str(), static_cast<long long>(config.n_head),
                           static_cast<long long>(config.head_dim), static_cast<long long>(config.n_head_kv)));
    }
    config.n_ff = file.need_integer(prefix + "feed_forward_length", 1, 524288);
    config.epsilon = static_cast<float>(file.real(prefix + "attention.layer_norm_rms_epsilon", 1e-12, 0.1).value_or(1e-6));
    config.block_size = static_cast<int>(file.integer(inner + "block_size", 2, 1024).value_or(0));
    if (config.block_size == 0) {
        file.refuse(inner + "block_size is missing: the file does not say how many positions the draft fills.");
    }
    if (config.block_size > DFLASH_MAX_ROWS) {
        unsupported(file, format("%sblock_size is %d; at most %d positions can be verified.", inner.c_str(), config.block_size, DFLASH_MAX_ROWS));
    }
    for (const std::string & key :
         {inner + "mask_token_id", prefix + "mask_token_id", std::string("dflash.mask_token_id"), std::string("tokenizer.ggml.mask_token_id")}) {
        if (const auto id = file.integer(key, 0, INT32_MAX)) {
            config.mask_token = static_cast<int32_t>(*id);
            break;
        }
    }
    if (config.mask_token < 0) {
        file.refuse("tokenizer.ggml.mask_token_id is missing: the file does not say which token masks a position.");
    }

    // Upstream counts layer *inputs*, so its numbers are one higher than those of the outputs it means.
    const auto inputs = file.integers(prefix + "target_layers", 1, 4096, 32);
    const auto outputs = file.integers(prefix + "dflash.target_layer_ids", 0, 4095, 32);
    if (!inputs && !outputs) {
        file.refuse(prefix + (is_upstream(file) ? "target_layers" : "dflash.target_layer_ids") +
                    " is missing: the file does not say which target layers the draft reads.");
    }
    for (const int64_t id : inputs ? *inputs : *outputs) {
        config.feature_layers.push_back(static_cast<int>(inputs ? id - 1 : id));
    }
    if (config.feature_layers.empty()) {
        file.refuse(prefix + "target_layers is empty.");
    }

    config.is_sliding.assign(static_cast<size_t>(config.n_layers), false);
    config.sliding_window = static_cast<int>(file.integer(prefix + "attention.sliding_window", 0, INT32_MAX).value_or(0));
    if (const auto pattern = file.booleans(prefix + "attention.sliding_window_pattern", 1024)) {
        if (pattern->size() != config.is_sliding.size()) {
            file.refuse(format("%sattention.sliding_window_pattern has %zu entries for %d layers.", prefix.c_str(), pattern->size(), config.n_layers));
        }
        config.is_sliding = *pattern;
        if (config.sliding_window == 0 && std::count(pattern->begin(), pattern->end(), true) > 0) {
            file.refuse(prefix + "attention.sliding_window is missing although the pattern has sliding layers.");
        }
    } else if (config.sliding_window > 0) {
        config.is_sliding.assign(config.is_sliding.size(), true);
    }
    const auto causal = file.boolean(prefix + "attention.causal");
    config.is_causal = causal.value_or(false);
    // Without a word in the file, upstream's drafts see the whole block, and Lucebox' sliding layers only what is before.
    config.is_sliding_causal = causal.value_or(!is_upstream(file));
    if (!is_upstream(file)) {
        config.fc = file.tensor("dflash_fc.weight") ? "dflash_fc.weight" : "dflash.fc.weight";
        config.feature_norm = file.tensor("dflash_hidden_norm.weight") ? "dflash_hidden_norm.weight" : "dflash.hidden_norm.weight";
        if (file.integer(prefix + "dflash.context_kv_layer_norm", 0, 1).value_or(0) != 0) {
            unsupported(file, "its context rows pass a layer norm (context_kv_layer_norm), which this version does not run yet.");
        }
    }
    if (!file.find(prefix + "rope.freq_base")) {
        file.refuse(prefix + "rope.freq_base is missing: a guess would silently spoil every draft.");
    }
    const auto n_features = static_cast<int64_t>(config.feature_layers.size());
    file.need_tensor(config.fc, {n_features * config.n_embd, config.n_embd});
    return config;
}

void require_fit(const ModelFile & draft, const DraftConfig & config, const TargetFacts & target) {
    const auto refuse = [&](const std::string & why) { throw Error(DFLASH_UNSUPPORTED, draft.label() + " is not a draft for " + target.label + ": " + why); };
    if (config.n_embd != target.n_embd) {
        refuse(format("the draft is %lld wide, the target %lld.", static_cast<long long>(config.n_embd), static_cast<long long>(target.n_embd)));
    }
    for (const int layer : config.feature_layers) {
        if (layer >= target.n_layers) {
            refuse(format("it reads layer %d, the target has %d.", layer + 1, target.n_layers));
        }
    }
    if (config.mask_token >= target.n_vocab) {
        refuse(format("its mask token is %d, the target's vocabulary ends at %lld.", config.mask_token, static_cast<long long>(target.n_vocab - 1)));
    }
    const Value * mine = draft.find("tokenizer.ggml.tokens");
    if (mine && mine->kind == DFLASH_VALUE_STRINGS) {
        if (static_cast<int64_t>(mine->count) != target.n_vocab) {
            refuse(format("the draft's vocabulary has %llu tokens, the target's %lld.", static_cast<unsigned long long>(mine->count),
                          static_cast<long long>(target.n_vocab)));
        }
        const Value * theirs = target.file ? target.file->find("tokenizer.ggml.tokens") : nullptr;
        if (theirs && theirs->kind == DFLASH_VALUE_STRINGS && (theirs->n_bytes != mine->n_bytes || std::memcmp(theirs->data, mine->data, mine->n_bytes) != 0)) {
            refuse("the two vocabularies have the same size but different tokens.");
        }
    }
    const int64_t n_vocab = draft.integer(config.prefix + "vocab_size", 1, INT32_MAX).value_or(target.n_vocab);
    if (n_vocab != target.n_vocab) {
        refuse(format("the draft's vocabulary has %lld tokens, the target's %lld.", static_cast<long long>(n_vocab), static_cast<long long>(target.n_vocab)));
    }
}

} // namespace dflash
