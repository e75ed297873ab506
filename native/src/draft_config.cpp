// Reading draft metadata in the dialects that exist; see draft_config.h.
#include "draft_config.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "log.h"

namespace dflash {

namespace {

constexpr const char * kLuceboxEnding = "dflash-draft";
constexpr int64_t kLargestWindow = 1 << 28; // beyond every context; sums with it stay in range

bool ends_with(const std::string & text, const std::string & ending) {
    return text.size() >= ending.size() && text.compare(text.size() - ending.size(), ending.size(), ending) == 0;
}

[[noreturn]] void unsupported(const ModelFile & file, const std::string & why) {
    throw Error(DFLASH_UNSUPPORTED, file.label() + ": " + why);
}

// Where the writers put a key, the most specific place first. A key that is nowhere is named as its own dialect has it.
class Keys {
  public:
    explicit Keys(const ModelFile & file) : file_(file), prefix_(file.architecture() + "."), is_lucebox_(ends_with(file.architecture(), kLuceboxEnding)) {}

    // Dimensions: ARCHITECTURE.name.
    std::string common(const std::string & name) const { return first({prefix_ + name, "dflash." + name}); }
    // What only drafts have: ARCHITECTURE.dflash.name, ARCHITECTURE.name, dflash.name. `group` is Lucebox' third level.
    std::string own(const std::string & name, const std::string & group = "") const {
        std::vector<std::string> places;
        if (!group.empty()) {
            places.push_back(prefix_ + "dflash." + group + "." + name);
        }
        places.push_back(prefix_ + "dflash." + name);
        places.push_back(prefix_ + name);
        places.push_back("dflash." + name);
        return first(places, is_lucebox_ ? 0 : places.size() - 2);
    }
    bool has(const std::string & key) const { return file_.find(key) != nullptr; }

  private:
    std::string first(const std::vector<std::string> & places, size_t customary = 0) const {
        const auto found = std::find_if(places.begin(), places.end(), [&](const std::string & key) { return has(key); });
        return found != places.end() ? *found : places[customary];
    }

    const ModelFile & file_;
    std::string prefix_;
    bool is_lucebox_;
};

// Writers have booleans or the numbers 0 and 1 for the same key.
bool flag(const ModelFile & file, const std::string & key, bool otherwise) {
    const Value * value = file.find(key);
    if (value && value->kind == DFLASH_VALUE_INTEGER) {
        return file.need_integer(key, 0, 1) != 0;
    }
    return file.boolean(key).value_or(otherwise);
}

bool has_any(const ModelFile & file, std::initializer_list<const char *> names) {
    return std::any_of(names.begin(), names.end(), [&](const char * name) { return file.tensor(name) != nullptr; });
}

// Kinds of draft that look like one of ours and would run as one, silently worse.
void refuse_other_kinds(const ModelFile & file, const Keys & keys) {
    const auto is_domino = [](const TensorInfo & tensor) { return tensor.name.compare(0, 14, "dflash.domino.") == 0; };
    if (std::any_of(file.tensors().begin(), file.tensors().end(), is_domino) || flag(file, file.architecture() + ".dflash.domino.enabled", false)) {
        unsupported(file, "it is a Domino draft (its tokens come out of a recurrent head, one by one), which this engine does not run.");
    }
    if (file.integer(keys.common("hyper_connection.count"), 0, INT32_MAX).value_or(0) > 0) {
        unsupported(file, "it is a draft with hyper-connections (DeepSeek V4), which this engine does not run.");
    }
    if (file.integer(keys.common("expert_count"), 0, INT32_MAX).value_or(0) > 0) {
        unsupported(file, "it is a mixture-of-experts draft, which this engine does not run.");
    }
    if (has_any(file, {"blk.0.attn_sinks.weight"})) {
        unsupported(file, "its attention has sinks (attn_sinks.weight), which this engine does not run in drafts.");
    }
    if (!file.tensor("blk.0.attn_v.weight") && file.tensor("blk.0.attn_k.weight")) {
        unsupported(file, "its layers have no attn_v.weight (keys serve as values), which this engine does not run in drafts.");
    }
}

DraftKind find_kind(const ModelFile & file) {
    if (has_any(file, {"markov_w1.weight", "markov_w2.weight", "dflash.dspark.markov.w1", "dflash.dspark.markov.w2", "dflash.dspark.markov.w1.weight"})) {
        return DraftKind::kDSpark;
    }
    if (has_any(file, {"selector_hidden.weight", "selector_predecessor.weight", "selector_successor.weight", "dflash.selector.hproj.weight",
                       "blk.0.attn_conv_base", "blk.0.attn_conv.base", "blk.0.ffn_conv_base", "blk.0.ffn_conv.base"})) {
        return DraftKind::kDFlash2;
    }
    return DraftKind::kDFlash;
}

void read_dimensions(const ModelFile & file, const Keys & keys, DraftConfig & config) {
    config.n_layers = static_cast<int>(file.need_integer(keys.common("block_count"), 1, 1024));
    config.n_embd = file.need_integer(keys.common("embedding_length"), 1, 131072);
    config.n_head = file.need_integer(keys.common("attention.head_count"), 1, 1024);
    config.n_head_kv = file.integer(keys.common("attention.head_count_kv"), 1, 1024).value_or(config.n_head);
    config.head_dim = file.integer(keys.common("attention.key_length"), 2, 1024).value_or(config.n_embd / config.n_head);
    if (config.n_head % config.n_head_kv != 0 || config.head_dim % 2 != 0 || config.head_dim < 2 ||
        file.integer(keys.common("attention.value_length"), 1, 1024).value_or(config.head_dim) != config.head_dim) {
        file.refuse(format("%s: %lld heads of %lld over %lld key-value heads make no sense.", keys.common("attention.head_count").c_str(),
                           static_cast<long long>(config.n_head), static_cast<long long>(config.head_dim), static_cast<long long>(config.n_head_kv)));
    }
    config.n_ff = file.need_integer(keys.common("feed_forward_length"), 1, 524288);
    config.epsilon = static_cast<float>(file.real(keys.common("attention.layer_norm_rms_epsilon"), 1e-12, 0.1).value_or(1e-6));
    config.attention_scale = static_cast<float>(file.real(keys.common("attention.scale"), 0, 1e6).value_or(0));
    if (config.attention_scale == 0) {
        config.attention_scale = 1.0f / std::sqrt(static_cast<float>(config.head_dim));
    }
    config.value_scale = static_cast<float>(file.real(keys.common("attention.value_scale"), -1e6, 1e6).value_or(1));
    config.embedding_scale = static_cast<float>(file.real(keys.common("embedding_scale"), -1e6, 1e6).value_or(1));
    config.logit_scale = static_cast<float>(file.real(keys.common("logit_scale"), -1e6, 1e6).value_or(1));
    config.logit_softcap = static_cast<float>(file.real(keys.common("final_logit_softcapping"), 0, 1e6).value_or(0));
    const std::string activation = file.text(keys.common("hidden_activation")).value_or("silu");
    config.is_gelu = activation.compare(0, 4, "gelu") == 0;
    if (!config.is_gelu && activation != "silu" && activation != "swish") {
        unsupported(file, keys.common("hidden_activation") + " is '" + activation + "'; this engine knows silu and gelu.");
    }
    if (!keys.has(keys.common("rope.freq_base"))) {
        file.refuse(keys.common("rope.freq_base") + " is missing: a guess would silently spoil every draft.");
    }
}

// Numbers that a converter took from another model contradict the tensors; say which number, and what the tensor says.
void check_dimensions(const ModelFile & file, const Keys & keys, const DraftConfig & config) {
    const auto block = [](int i) { return "blk." + std::to_string(i) + "."; };
    int held = 0;
    while (held <= config.n_layers && file.tensor(block(held) + "attn_norm.weight")) {
        ++held;
    }
    if (held != config.n_layers) {
        file.refuse(format("%s is %d, but the file holds %s%d layers.", keys.common("block_count").c_str(), config.n_layers,
                           held > config.n_layers ? "at least " : "", held));
    }
    const auto check = [&](const char * key, int64_t number, const std::string & name, int dimension, int64_t each) {
        const TensorInfo * tensor = file.tensor(name);
        if (tensor && tensor->ne[dimension] != number * each) {
            file.refuse(format("%s is %lld, which asks for %lld in %s; it has %lld.", keys.common(key).c_str(), static_cast<long long>(number),
                               static_cast<long long>(number * each), name.c_str(), static_cast<long long>(tensor->ne[dimension])));
        }
    };
    check("embedding_length", config.n_embd, "output_norm.weight", 0, 1);
    check("attention.key_length", config.head_dim, block(0) + "attn_k_norm.weight", 0, 1);
    check("attention.head_count", config.n_head, block(0) + "attn_q.weight", 1, config.head_dim);
    check("attention.head_count_kv", config.n_head_kv, block(0) + "attn_k.weight", 1, config.head_dim);
    check("feed_forward_length", config.n_ff, block(0) + "ffn_gate.weight", 1, 1);
}

void read_block_keys(const ModelFile & file, const Keys & keys, DraftConfig & config) {
    const std::string key = keys.own("block_size");
    const auto size = file.integer(key, 1, 1024);
    if (!size) {
        file.refuse(key + " is missing: the file does not say how many positions the draft fills.");
    }
    config.is_anchor_first = flag(file, keys.own("sample_from_anchor"), config.kind == DraftKind::kDSpark);
    config.block_size = static_cast<int>(*size) + (config.is_anchor_first ? 1 : 0);
    if (config.block_size < 2) {
        file.refuse(key + " is 1: a block of the root alone drafts nothing.");
    }
    if (config.block_size > DFLASH_MAX_ROWS) {
        unsupported(file, format("%s is %lld; at most %d positions can be verified.", key.c_str(), static_cast<long long>(*size), DFLASH_MAX_ROWS));
    }
    std::string mask = keys.own("mask_token_id");
    if (!keys.has(mask)) {
        mask = "tokenizer.ggml.mask_token_id";
    }
    const auto token = file.integer(mask, 0, INT32_MAX);
    if (!token) {
        file.refuse(mask + " is missing: the file does not say which token masks a position.");
    }
    config.mask_token = static_cast<int32_t>(*token);
}

void read_feature_layers(const ModelFile & file, const Keys & keys, DraftConfig & config) {
    const std::string fc = tensor_name(file, {"fc.weight", "dflash.fc.weight", "dflash_fc.weight"});
    const TensorInfo * tensor = file.tensor(fc);
    if (!tensor) {
        file.refuse("tensor '" + fc + "': is missing");
    }
    if (tensor->ne[0] % config.n_embd != 0 || tensor->ne[0] / config.n_embd > 32) {
        file.refuse(format("%s takes %lld values, which is not up to 32 layers of %s = %lld.", fc.c_str(), static_cast<long long>(tensor->ne[0]),
                           keys.common("embedding_length").c_str(), static_cast<long long>(config.n_embd)));
    }
    config.n_features = static_cast<int>(tensor->ne[0] / config.n_embd);
    file.need_tensor(fc, {config.n_features * config.n_embd, config.n_embd});

    // llama.cpp counts layer *inputs*, so its numbers are one higher than those of the outputs that are meant.
    const std::string inputs_key = keys.own("target_layers");
    const std::string outputs_key = keys.own("target_layer_ids");
    const auto inputs = file.integers(inputs_key, 1, 4096, 32);
    const auto outputs = file.integers(outputs_key, 0, 4095, 32);
    if (!inputs && !outputs) {
        if (ends_with(file.architecture(), kLuceboxEnding)) {
            return; // its converters left the list out until August 2026; require_fit has the custom of that time
        }
        file.refuse(inputs_key + " is missing: the file does not say which target layers the draft reads (llama.cpp's converter writes it; " +
                    "Lucebox's writes " + file.architecture() + ".dflash.target_layer_ids).");
    }
    const std::string & key = inputs ? inputs_key : outputs_key;
    for (const int64_t id : inputs ? *inputs : *outputs) {
        config.feature_layers.push_back(static_cast<int>(inputs ? id - 1 : id));
    }
    if (config.feature_layers.size() != static_cast<size_t>(config.n_features)) {
        file.refuse(format("%s lists %zu layers, but %s takes the output of %d.", key.c_str(), config.feature_layers.size(), fc.c_str(), config.n_features));
    }
    if (inputs && outputs && !std::equal(outputs->begin(), outputs->end(), config.feature_layers.begin(), config.feature_layers.end())) {
        file.refuse(inputs_key + " and " + outputs_key + " name different layers (the first counts a layer's input, so its numbers are one higher).");
    }
}

void read_attention_masks(const ModelFile & file, const Keys & keys, DraftConfig & config) {
    const std::string window_key = keys.common("attention.sliding_window");
    const std::string pattern_key = keys.common("attention.sliding_window_pattern");
    config.is_sliding.assign(static_cast<size_t>(config.n_layers), false);
    config.sliding_window = static_cast<int>(std::min<int64_t>(file.integer(window_key, 0, INT32_MAX).value_or(0), kLargestWindow));
    if (const auto pattern = file.booleans(pattern_key, 1024)) {
        if (pattern->size() != config.is_sliding.size()) {
            file.refuse(format("%s has %zu entries for %d layers.", pattern_key.c_str(), pattern->size(), config.n_layers));
        }
        config.is_sliding = *pattern;
        if (config.sliding_window == 0 && std::count(pattern->begin(), pattern->end(), true) > 0) {
            file.refuse(window_key + " is missing although the pattern has sliding layers.");
        }
    } else if (config.sliding_window > 0) {
        config.is_sliding.assign(config.is_sliding.size(), true);
    }
    // Without a word in the file: z-lab's own code, and Lucebox, let a sliding layer see only what is before.
    config.is_causal = flag(file, keys.common("attention.causal"), false);
    config.is_sliding_causal = flag(file, keys.common("attention.causal"), true);
}

// A number that the tensors know too: `key` when the file has it, and then it has to be `size`.
int64_t checked(const ModelFile & file, const std::string & key, int64_t size, const std::string & tensor) {
    const int64_t number = file.integer(key, 1, INT32_MAX).value_or(size);
    if (number != size) {
        file.refuse(format("%s is %lld, but %s says %lld.", key.c_str(), static_cast<long long>(number), tensor.c_str(), static_cast<long long>(size)));
    }
    return number;
}

const TensorInfo & need(const ModelFile & file, const std::string & name) {
    const TensorInfo * tensor = file.tensor(name);
    if (!tensor) {
        file.refuse("tensor '" + name + "': is missing");
    }
    return *tensor;
}

void read_head(const ModelFile & file, const Keys & keys, DraftConfig & config) {
    if (config.kind == DraftKind::kDFlash2) {
        const std::string base = tensor_name(file, {"blk.0.attn_conv_base", "blk.0.attn_conv.base", "blk.0.attn_conv_base.weight"});
        const std::string projection = tensor_name(file, {"blk.0.attn_conv_proj.weight", "blk.0.attn_conv.proj.weight"});
        const std::string hidden = tensor_name(file, {"selector_hidden.weight", "dflash.selector.hproj.weight"});
        const int64_t n_rows = need(file, projection).ne[1];
        config.conv_taps = checked(file, keys.own("conv_kernel_size", "dflash2"), need(file, base).ne[1], base);
        if (config.conv_taps > 16 || n_rows % (2 * config.conv_taps) != 0 || config.n_embd % (n_rows / (2 * config.conv_taps)) != 0) {
            file.refuse(format("%s has %lld rows, which do not make two sides of %lld taps over whole groups of %lld channels.", projection.c_str(),
                               static_cast<long long>(n_rows), static_cast<long long>(config.conv_taps), static_cast<long long>(config.n_embd)));
        }
        config.conv_group = checked(file, keys.own("conv_group_size", "dflash2"), config.n_embd / (n_rows / (2 * config.conv_taps)), projection);
        config.rank = checked(file, keys.own("selector_rank", "dflash2"), need(file, hidden).ne[1], hidden);
        config.selector_top_k = static_cast<int>(file.need_integer(keys.own("selector_top_k", "dflash2"), 1, 32));
    } else if (config.kind == DraftKind::kDSpark) {
        const std::string table = tensor_name(file, {"markov_w1.weight", "dflash.dspark.markov.w1", "dflash.dspark.markov.w1.weight"});
        const std::string confidence = tensor_name(file, {"conf_proj.weight", "dflash.dspark.confidence.weight"});
        config.rank = checked(file, keys.own("markov_rank", "dspark"), need(file, table).ne[0], table);
        if (const TensorInfo * tensor = file.tensor(confidence)) {
            config.confidence_width = tensor->ne[0];
            if (tensor->ne[0] != config.n_embd && tensor->ne[0] != config.n_embd + config.rank) {
                file.refuse(format("%s takes %lld values; %lld or %lld were expected.", confidence.c_str(), static_cast<long long>(tensor->ne[0]),
                                   static_cast<long long>(config.n_embd), static_cast<long long>(config.n_embd + config.rank)));
            }
        } else if (flag(file, keys.own("has_confidence_head"), false)) {
            file.refuse(keys.own("has_confidence_head") + " is true, but tensor '" + confidence + "' is missing.");
        }
    }
}

} // namespace

// Whoever calls it something with "dflash" in it means a draft; its keys tell the rest.
bool is_draft_architecture(const std::string & architecture) {
    std::string lower = architecture;
    std::transform(lower.begin(), lower.end(), lower.begin(), [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; });
    return lower.find("dflash") != std::string::npos;
}

std::string tensor_name(const ModelFile & file, std::initializer_list<std::string> names) {
    const auto found = std::find_if(names.begin(), names.end(), [&](const std::string & name) { return file.tensor(name) != nullptr; });
    return found != names.end() ? *found : *names.begin();
}

DraftConfig read_draft_config(const ModelFile & file) {
    if (!is_draft_architecture(file.architecture())) {
        file.refuse("general.architecture is '" + file.architecture() + "', which is not a DFlash draft.");
    }
    const Keys keys(file);
    refuse_other_kinds(file, keys);
    DraftConfig config;
    config.prefix = file.architecture() + ".";
    config.kind = find_kind(file);
    read_dimensions(file, keys, config);
    check_dimensions(file, keys, config);
    read_block_keys(file, keys, config);
    read_feature_layers(file, keys, config);
    read_attention_masks(file, keys, config);
    read_head(file, keys, config);
    // Lucebox' later files with gates or norms of each feature were trained with normed context rows, key or not.
    config.is_context_normed =
        flag(file, keys.own("context_kv_layer_norm"), false) || has_any(file, {"blk.0.attn_gate.weight", "dflash.aux_hidden_norm.0.weight"});
    return config;
}

void require_fit(const ModelFile & draft, DraftConfig & config, const TargetFacts & target) {
    const auto refuse = [&](const std::string & why) { throw Error(DFLASH_UNSUPPORTED, draft.label() + " is not a draft for " + target.label + ": " + why); };
    if (config.n_embd != target.n_embd) {
        refuse(format("the draft is %lld wide, the target %lld.", static_cast<long long>(config.n_embd), static_cast<long long>(target.n_embd)));
    }
    if (config.feature_layers.empty()) {
        // What Lucebox computed for itself before its files had the list: evenly spread, the last two layers left out.
        const int stride = config.n_features > 1 ? (target.n_layers - 2) / (config.n_features - 1) : 1;
        for (int i = 0; i < config.n_features; ++i) {
            config.feature_layers.push_back(1 + i * stride);
        }
        log_line(DFLASH_LOG_WARNING, draft.label() + ": the file does not say which target layers it reads; the customary ones are taken. "
                                                     "If drafting does not pay, get a newer copy of the draft.");
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
    if (n_vocab != target.n_vocab && !draft.tensor("d2t")) {
        refuse(format("the draft's vocabulary has %lld tokens, the target's %lld.", static_cast<long long>(n_vocab), static_cast<long long>(target.n_vocab)));
    }
}

} // namespace dflash
