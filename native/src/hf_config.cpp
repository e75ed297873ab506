// The config.json of a published DFlash draft -> the metadata that its GGUF would have. Keys on both sides: the format
// notes of upstream's converter.

#include "hf_config.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <optional>
#include <stdexcept>
#include <utility>

#include "json.h"
#include "model_text.h"

namespace dflash {
namespace {

constexpr uint64_t kMaxConfigBytes = 4u << 20;
const char * const kPrefix = "dflash.";

[[noreturn]] void unsupported(const std::string & what) {
    throw Error(DFLASH_UNSUPPORTED, what);
}

// The folder's own name, for people.
std::string name_of_folder(std::string folder) {
    while (!folder.empty() && file_name(folder).empty()) {
        folder.pop_back();
    }
    return file_name(folder);
}

// Typed access to config.json. A key is looked for in `dflash_config` first, then at the top; null counts as absent.
class Config {
  public:
    explicit Config(const Json & root) : root_(root) {}

    [[noreturn]] static void refuse(const std::string & key, const std::string & why) { throw Error(DFLASH_BAD_FILE, "config.json: " + key + ": " + why); }

    const Json * find(const char * key) const {
        const Json * inner = root_.find("dflash_config");
        const Json * value = inner != nullptr ? inner->find(key) : nullptr;
        value = is_given(value) ? value : root_.find(key);
        return is_given(value) ? value : nullptr;
    }

    std::optional<int64_t> integer(const char * key, int64_t low, int64_t high) const {
        const Json * value = find(key);
        if (value == nullptr) {
            return std::nullopt;
        }
        if (value->kind != Json::Kind::kInteger || value->integer < low || value->integer > high) {
            refuse(key, shown(*value) + " is not a whole number from " + std::to_string(low) + " to " + std::to_string(high));
        }
        return value->integer;
    }

    int64_t need_integer(const char * key, int64_t low, int64_t high) const {
        const auto value = integer(key, low, high);
        if (!value) {
            refuse(key, "is missing");
        }
        return *value;
    }

    static std::optional<double> real_of(const Json * value, const std::string & key, double low, double high) {
        if (!is_given(value)) {
            return std::nullopt;
        }
        const bool is_number = value->kind == Json::Kind::kInteger || value->kind == Json::Kind::kReal;
        if (!is_number || !std::isfinite(value->real) || value->real < low || value->real > high) {
            refuse(key, shown(*value) + " is not a number from " + number_text(low) + " to " + number_text(high));
        }
        return value->real;
    }

    std::optional<double> real(const char * key, double low, double high) const { return real_of(find(key), key, low, high); }

    std::optional<bool> boolean(const char * key) const {
        const Json * value = find(key);
        if (value == nullptr) {
            return std::nullopt;
        }
        if (value->kind != Json::Kind::kBoolean) {
            refuse(key, shown(*value) + " is neither true nor false");
        }
        return value->boolean;
    }

    std::optional<std::string> text(const char * key) const {
        const Json * value = find(key);
        if (value == nullptr) {
            return std::nullopt;
        }
        if (value->kind != Json::Kind::kString) {
            refuse(key, shown(*value) + " is not text");
        }
        return value->string;
    }

    const Json & root() const { return root_; }
    static bool is_given(const Json * value) { return value != nullptr && value->kind != Json::Kind::kNull; }

    static std::string shown(const Json & value) {
        switch (value.kind) {
            case Json::Kind::kNull: return "null";
            case Json::Kind::kBoolean: return value.boolean ? "true" : "false";
            case Json::Kind::kInteger: return std::to_string(value.integer);
            case Json::Kind::kReal: return number_text(value.real);
            case Json::Kind::kString: return "'" + printable(value.string) + "'";
            case Json::Kind::kArray: return "a list";
            case Json::Kind::kObject: return "an object";
        }
        return "something";
    }

  private:
    const Json & root_;
};

bool is_draft_class(const std::string & name) {
    return name == "DFlashDraftModel" || name == "DFlash2DraftModel" || name == "Qwen3DSparkModel" || name == "DSparkDraftModel" ||
           name == "DSparkSpeculator" || name == "Lfm2DSparkDraftModel" || name == "LingDSparkModel" || name == "Gemma4DSparkModel";
}

void check_is_draft(const Config & config) {
    const Json * classes = config.root().find("architectures");
    if (classes != nullptr && classes->kind == Json::Kind::kArray && !classes->items.empty()) {
        if (!is_draft_class(classes->items[0].string)) {
            unsupported("config.json: architectures: " + Config::shown(classes->items[0]) +
                        " is not a DFlash draft; of other models this engine reads GGUF files");
        }
    } else if (!Config::is_given(config.root().find("dflash_config"))) {
        unsupported("config.json: architectures: is missing, and there is no dflash_config: this is not a DFlash draft");
    }
}

// Target layers whose output is read. Where the config is silent they follow from the depths of target and draft, as in
// the authors' code: spread evenly between the second and the fourth last.
std::vector<int64_t> target_layers(const Config & config, int64_t n_layers) {
    std::vector<int64_t> layers;
    if (const Json * ids = config.find("target_layer_ids")) {
        if (ids->kind != Json::Kind::kArray || ids->items.empty() || ids->items.size() > 32) {
            Config::refuse("target_layer_ids", "is not a list of 1 to 32 layers");
        }
        for (const Json & id : ids->items) {
            if (id.kind != Json::Kind::kInteger || id.integer < 0 || id.integer > 4095) {
                Config::refuse("target_layer_ids", Config::shown(id) + " is not a layer");
            }
            layers.push_back(id.integer);
        }
        return layers;
    }
    const int64_t n_target = config.need_integer("num_target_layers", 5, 4096);
    if (n_layers == 1) {
        return {n_target / 2};
    }
    if (n_layers > 32) {
        Config::refuse("target_layer_ids", "is missing");
    }
    for (int64_t i = 0; i < n_layers; ++i) {
        layers.push_back(std::llrint(1.0 + static_cast<double>(i * (n_target - 4)) / static_cast<double>(n_layers - 1)));
    }
    return layers;
}

// Puts metadata into a ModelFile. The values are kept by the file itself, in GGUF's layout.
class MetadataWriter {
  public:
    explicit MetadataWriter(std::map<std::string, Value> & values) : values_(values) {}

    void integer(const std::string & key, int64_t number) { values_[key] = of_integers({number}, DFLASH_VALUE_INTEGER); }

    void integers(const std::string & key, const std::vector<int64_t> & numbers) { values_[key] = of_integers(numbers, DFLASH_VALUE_INTEGERS); }

    void maybe(const std::string & key, std::optional<int64_t> number) {
        if (number) {
            integer(key, *number);
        }
    }

    void maybe(const std::string & key, std::optional<double> number) {
        if (number) {
            real(key, *number);
        }
    }

    void maybe(const std::string & key, std::optional<bool> flag) {
        if (flag) {
            Value value = of_bytes(std::vector<uint8_t>{static_cast<uint8_t>(*flag ? 1 : 0)}, DFLASH_VALUE_BOOLEAN, 1, 1);
            value.integer = *flag ? 1 : 0;
            values_[key] = value;
        }
    }

    void real(const std::string & key, double number) {
        std::vector<uint8_t> bytes(sizeof(number));
        std::memcpy(bytes.data(), &number, sizeof(number));
        Value value = of_bytes(std::move(bytes), DFLASH_VALUE_REAL, 1, sizeof(number));
        value.real = number;
        values_[key] = value;
    }

    void booleans(const std::string & key, std::vector<uint8_t> flags) {
        const uint64_t count = flags.size();
        values_[key] = of_bytes(std::move(flags), DFLASH_VALUE_BOOLEANS, count, 1);
    }

    void text(const std::string & key, const std::string & words) {
        values_[key] = of_bytes(std::vector<uint8_t>(words.begin(), words.end()), DFLASH_VALUE_STRING, words.size(), 0);
    }

  private:
    static Value of_bytes(std::vector<uint8_t> bytes, dflash_value_kind kind, uint64_t count, int element_bytes) {
        Value value;
        value.kind = kind;
        value.count = count;
        value.element_bytes = element_bytes;
        value.n_bytes = bytes.size();
        value.owned = std::make_shared<const std::vector<uint8_t>>(std::move(bytes));
        value.data = value.owned->data();
        return value;
    }

    static Value of_integers(const std::vector<int64_t> & numbers, dflash_value_kind kind) {
        std::vector<uint8_t> bytes(numbers.size() * sizeof(int64_t));
        std::memcpy(bytes.data(), numbers.data(), bytes.size());
        Value value = of_bytes(std::move(bytes), kind, numbers.size(), sizeof(int64_t));
        value.is_signed = true;
        value.integer = kind == DFLASH_VALUE_INTEGER ? numbers[0] : 0;
        return value;
    }

    std::map<std::string, Value> & values_;
};

// Base and scaling of the rotary embedding. Newer configs keep both in rope_parameters, older ones at the top.
void read_rope(const Config & config, int64_t head_dim, MetadataWriter & out) {
    const std::string prefix = kPrefix;
    const Json * nested = config.root().find("rope_parameters");
    if (Config::is_given(nested) && nested->find("full_attention") != nullptr) {
        const Json * full = nested->find("full_attention");
        const Json * sliding = nested->find("sliding_attention");
        const Json * theirs = sliding != nullptr ? sliding->find("rope_theta") : nullptr;
        const Json * ours = full->find("rope_theta");
        if (Config::is_given(theirs) && Config::is_given(ours) && theirs->real != ours->real) {
            unsupported("config.json: rope_parameters: full and sliding layers rotate differently, which this engine does not run");
        }
        nested = full;
    }
    const auto inner = Config::is_given(nested) ? Config::real_of(nested->find("rope_theta"), "rope_parameters.rope_theta", 1.0, 1e12) : std::nullopt;
    const auto theta = inner ? inner : config.real("rope_theta", 1.0, 1e12);
    if (!theta) {
        Config::refuse("rope_theta", "is missing, also in rope_parameters: a guess would silently spoil every draft");
    }
    out.real(prefix + "rope.freq_base", *theta);
    if (!config.boolean("rope_is_neox_style").value_or(true) || !config.boolean("is_neox_style").value_or(true)) {
        unsupported("config.json: rope_is_neox_style: drafts with interleaved rotation are read from GGUF files only");
    }
    if (const auto share = config.real("partial_rotary_factor", 0.0, 1.0)) {
        if (*share > 0 && *share < 1) {
            out.integer(prefix + "rope.dimension_count", static_cast<int64_t>(static_cast<double>(head_dim) * *share));
        }
    }
    const Json * scaling = config.root().find("rope_scaling");
    scaling = Config::is_given(scaling) ? scaling : nested;
    if (!Config::is_given(scaling)) {
        return;
    }
    const Json * type = scaling->find("rope_type");
    type = Config::is_given(type) ? type : scaling->find("type");
    if (!Config::is_given(type) || type->string == "default") {
        return;
    }
    if (type->string != "yarn" && type->string != "linear") {
        unsupported("config.json: rope_scaling: type " + Config::shown(*type) + " is not known; linear and yarn are");
    }
    const auto number = [&](const char * key, double low, double high) {
        return Config::real_of(scaling->find(key), std::string("rope_scaling.") + key, low, high);
    };
    const auto factor = number("factor", 1.0, 1e6);
    if (!factor) {
        Config::refuse("rope_scaling.factor", "is missing");
    }
    out.text(prefix + "rope.scaling.type", type->string);
    out.real(prefix + "rope.scaling.factor", *factor);
    if (const auto original = number("original_max_position_embeddings", 1, 2147483647)) {
        out.integer(prefix + "rope.scaling.original_context_length", static_cast<int64_t>(*original));
    }
    out.maybe(prefix + "rope.scaling.yarn_beta_fast", number("beta_fast", 0, 1e4));
    out.maybe(prefix + "rope.scaling.yarn_beta_slow", number("beta_slow", 0, 1e4));
    if (const auto attention = number("attention_factor", 0, 1e3)) {
        // GGUF's multiplies YaRN's own factor, Hugging Face's replaces it.
        out.real(prefix + "rope.scaling.attn_factor", *attention / (0.1 * std::log(*factor) + 1.0));
    }
}

// Which layers see a window only.
void read_windows(const Config & config, int64_t n_layers, MetadataWriter & out) {
    const std::string prefix = kPrefix;
    std::vector<uint8_t> is_sliding(static_cast<size_t>(n_layers), 0);
    std::optional<int64_t> window;
    if (config.boolean("use_swa").value_or(false)) {
        window = config.need_integer("swa_window_size", 1, 2147483647);
        std::fill(is_sliding.begin(), is_sliding.end(), static_cast<uint8_t>(1));
    } else if (const Json * types = config.find("layer_types")) {
        if (types->items.size() != static_cast<size_t>(n_layers)) {
            Config::refuse("layer_types", "has " + std::to_string(types->items.size()) + " entries for " + std::to_string(n_layers) + " layers");
        }
        for (size_t i = 0; i < types->items.size(); ++i) {
            if (types->items[i].string != "sliding_attention" && types->items[i].string != "full_attention") {
                Config::refuse("layer_types", Config::shown(types->items[i]) + " is not known");
            }
            is_sliding[i] = types->items[i].string == "sliding_attention" ? 1 : 0;
        }
        // An explicit false switches the window off whatever the layers are called; silence does not.
        window = config.boolean("use_sliding_window").value_or(true) ? config.integer("sliding_window", 1, 2147483647) : std::nullopt;
    }
    if (window && std::count(is_sliding.begin(), is_sliding.end(), static_cast<uint8_t>(1)) > 0) {
        out.integer(prefix + "attention.sliding_window", *window);
        out.booleans(prefix + "attention.sliding_window_pattern", is_sliding);
    }
}

Json parse_config(const std::string & path) {
    const Mapping text(path);
    if (text.size() > kMaxConfigBytes) {
        throw Error(DFLASH_BAD_FILE, "config.json: is larger than 4 MiB");
    }
    try {
        Json root = parse_json({reinterpret_cast<const char *>(text.data()), static_cast<size_t>(text.size())});
        if (root.kind != Json::Kind::kObject) {
            throw std::runtime_error("is not an object");
        }
        return root;
    } catch (const std::runtime_error & error) {
        throw Error(DFLASH_BAD_FILE, std::string("config.json: ") + error.what());
    }
}

} // namespace

void read_hf_config(const std::string & folder, std::map<std::string, Value> & values) {
    const Json root = parse_config(folder + "config.json");
    const Config config(root);
    check_is_draft(config);
    const std::string prefix = kPrefix;
    MetadataWriter out(values);
    out.text("general.architecture", "dflash");
    const std::string name = name_of_folder(folder);
    if (!name.empty() && is_plain_utf8(name)) {
        out.text("general.name", name);
    }
    const int64_t n_layers = config.need_integer("num_hidden_layers", 1, 1024);
    const int64_t n_embd = config.need_integer("hidden_size", 1, 131072);
    const int64_t n_head = config.need_integer("num_attention_heads", 1, 1024);
    const int64_t head_dim = config.integer("head_dim", 1, 1024).value_or(n_embd / n_head);
    out.integer(prefix + "block_count", n_layers);
    out.integer(prefix + "embedding_length", n_embd);
    out.integer(prefix + "feed_forward_length", config.need_integer("intermediate_size", 1, 524288));
    out.integer(prefix + "attention.head_count", n_head);
    out.integer(prefix + "attention.head_count_kv", config.integer("num_key_value_heads", 1, 1024).value_or(n_head));
    out.integer(prefix + "attention.key_length", head_dim);
    out.integer(prefix + "attention.value_length", head_dim);
    out.real(prefix + "attention.layer_norm_rms_epsilon", config.real("rms_norm_eps", 1e-12, 0.1).value_or(1e-6));
    out.maybe(prefix + "context_length", config.integer("max_position_embeddings", 1, 2147483647));
    out.maybe(prefix + "vocab_size", config.integer("vocab_size", 1, 2147483647));
    const std::string activation = config.text("hidden_act").value_or("silu");
    if (activation != "silu" && activation != "swish") {
        unsupported("config.json: hidden_act: '" + printable(activation) + "' is not known; silu is");
    }
    read_rope(config, head_dim, out);
    read_windows(config, n_layers, out);

    const auto causal = config.root().find("is_causal") != nullptr ? config.boolean("is_causal") : config.boolean("causal");
    out.maybe(prefix + "attention.causal", causal);
    out.integer(prefix + "block_size", config.integer("block_size", 2, 1024).value_or(16)); // the authors' default
    out.integer("tokenizer.ggml.mask_token_id", config.need_integer("mask_token_id", 0, 2147483647));
    std::vector<int64_t> inputs = target_layers(config, n_layers);
    for (int64_t & layer : inputs) {
        ++layer; // the output of a layer is the input of the next, which is what GGUF counts
    }
    out.integers(prefix + "target_layers", inputs);

    // Later kinds of draft.
    for (const char * key : {"conv_kernel_size", "conv_group_size", "selector_rank", "selector_top_k"}) {
        out.maybe(prefix + key, config.integer(key, 1, 131072));
    }
    out.maybe(prefix + "sample_from_anchor", config.boolean("sample_from_anchor"));
    out.maybe(prefix + "has_confidence_head", config.boolean("has_confidence_head"));
    out.maybe(prefix + "logit_scale", config.real("output_multiplier", -1e6, 1e6));
    out.maybe(prefix + "final_logit_softcapping", config.real("final_logit_softcapping", 0, 1e6));
    out.maybe(prefix + "embedding_scale", config.real("input_embedding_scale", -1e6, 1e6));
}

} // namespace dflash
