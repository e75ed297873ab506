// Tensor names: Hugging Face's on the left, upstream GGUF's on the right. What has no right-hand side is refused, because
// a draft that runs with a part missing is only silently worse.

#include "safetensors_file.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <optional>
#include <utility>

#include "hf_config.h"
#include "json.h"
#include "model_text.h"

namespace dflash {
namespace {

constexpr uint64_t kMaxHeaderBytes = 16u << 20;

[[noreturn]] void unsupported(const std::string & what) {
    throw Error(DFLASH_UNSUPPORTED, what);
}

uint64_t little_u64(const uint8_t * data) {
    uint64_t value;
    std::memcpy(&value, data, sizeof(value));
    return value;
}

std::string folder_of(const std::string & path) {
    const size_t n_name = file_name(path).size();
    return path.substr(0, path.size() - n_name); // with its slash; "" for the current folder
}

struct Renamed {
    const char * from;
    const char * to;
};

constexpr Renamed kWhole[] = {
    {"fc.weight", "fc.weight"},
    {"hidden_norm.weight", "enc.output_norm.weight"},
    {"norm.weight", "output_norm.weight"},
    {"embed_tokens.weight", "token_embd.weight"},
    {"lm_head.weight", "output.weight"},
    {"candidate_selector.predecessor_codebook", "selector_predecessor.weight"},
    {"candidate_selector.predecessor_codebook.weight", "selector_predecessor.weight"},
    {"candidate_selector.successor_codebook", "selector_successor.weight"},
    {"candidate_selector.successor_codebook.weight", "selector_successor.weight"},
    {"candidate_selector.hidden_projection.weight", "selector_hidden.weight"},
    {"markov_head.markov_w1", "markov_w1.weight"},
    {"markov_head.markov_w1.weight", "markov_w1.weight"},
    {"markov_head.markov_w2", "markov_w2.weight"},
    {"markov_head.markov_w2.weight", "markov_w2.weight"},
    {"confidence_head.proj.weight", "conf_proj.weight"},
    {"confidence_head.proj.bias", "conf_proj.bias"},
};

constexpr Renamed kInLayer[] = {
    {"input_layernorm.weight", "attn_norm.weight"},    {"post_attention_layernorm.weight", "ffn_norm.weight"},
    {"self_attn.q_proj.weight", "attn_q.weight"},      {"self_attn.q_proj.bias", "attn_q.bias"},
    {"self_attn.k_proj.weight", "attn_k.weight"},      {"self_attn.k_proj.bias", "attn_k.bias"},
    {"self_attn.v_proj.weight", "attn_v.weight"},      {"self_attn.v_proj.bias", "attn_v.bias"},
    {"self_attn.o_proj.weight", "attn_output.weight"}, {"self_attn.o_proj.bias", "attn_output.bias"},
    {"self_attn.q_norm.weight", "attn_q_norm.weight"}, {"self_attn.k_norm.weight", "attn_k_norm.weight"},
    {"self_attn.sinks", "attn_sinks.weight"},          {"mlp.gate_proj.weight", "ffn_gate.weight"},
    {"mlp.up_proj.weight", "ffn_up.weight"},           {"mlp.down_proj.weight", "ffn_down.weight"},
    {"attention_conv.base_kernel", "attn_conv_base"},  {"attention_conv.kernel_projection.weight", "attn_conv_proj.weight"},
    {"mlp_conv.base_kernel", "ffn_conv_base"},         {"mlp_conv.kernel_projection.weight", "ffn_conv_proj.weight"},
};

template <size_t N> const char * renamed(const Renamed (&names)[N], std::string_view from) {
    for (const Renamed & name : names) {
        if (from == name.from) {
            return name.to;
        }
    }
    return nullptr;
}

// "" for tensors that are not weights; nullopt for unknown ones.
std::optional<std::string> gguf_name(std::string_view name, int64_t n_layers) {
    const auto starts = [&](std::string_view prefix) { return name.substr(0, prefix.size()) == prefix; };
    const auto ends = [&](std::string_view suffix) { return name.size() >= suffix.size() && name.substr(name.size() - suffix.size()) == suffix; };
    if (starts("model.")) {
        name.remove_prefix(6);
    }
    if (name == "t2d" || ends("rotary_emb.inv_freq")) {
        return ""; // both follow from the rest
    }
    if (const char * to = renamed(kWhole, name)) {
        return to;
    }
    if (!starts("layers.")) {
        return std::nullopt;
    }
    name.remove_prefix(7);
    const size_t n_digits = std::min(name.find_first_not_of("0123456789"), name.size());
    if (n_digits == 0 || n_digits > 4 || n_digits == name.size() || name[n_digits] != '.') {
        return std::nullopt;
    }
    const std::string layer(name.substr(0, n_digits));
    if (std::stoi(layer) >= n_layers) {
        return std::nullopt;
    }
    const char * to = renamed(kInLayer, name.substr(n_digits + 1));
    return to != nullptr ? std::optional<std::string>("blk." + layer + "." + to) : std::nullopt;
}

std::optional<ggml_type> type_of(const std::string & dtype) {
    if (dtype == "F32") {
        return GGML_TYPE_F32;
    }
    if (dtype == "F16") {
        return GGML_TYPE_F16;
    }
    if (dtype == "BF16") {
        return GGML_TYPE_BF16;
    }
    return std::nullopt;
}

// Type, shape and extent of one entry of the header. `data` begins where the header ends and has n_data bytes.
TensorInfo read_tensor(const ModelFile & file, const std::string & name, const Json & entry, const uint8_t * data, uint64_t n_data) {
    const std::string where = "tensor '" + printable(name) + "': ";
    const Json * dtype = entry.find("dtype");
    const Json * shape = entry.find("shape");
    const Json * extent = entry.find("data_offsets");
    const auto is_whole = [](const Json & number) { return number.kind == Json::Kind::kInteger && number.integer >= 0; };
    if (dtype == nullptr || dtype->kind != Json::Kind::kString || shape == nullptr || shape->kind != Json::Kind::kArray || extent == nullptr ||
        extent->items.size() != 2 || !is_whole(extent->items[0]) || !is_whole(extent->items[1])) {
        file.refuse(where + "has no sound dtype, shape and data_offsets");
    }
    TensorInfo tensor;
    tensor.name = name;
    const auto type = type_of(dtype->string);
    if (!type) {
        unsupported(file.label() + ": " + where + "type " + printable(dtype->string) + " cannot be read; F32, F16 and BF16 can");
    }
    tensor.type = *type;
    if (shape->items.empty() || shape->items.size() > GGML_MAX_DIMS) {
        file.refuse(where + std::to_string(shape->items.size()) + " dimensions; 1 to 4 are allowed");
    }
    tensor.n_dims = static_cast<int>(shape->items.size());
    uint64_t n_bytes = ggml_type_size(tensor.type);
    for (int d = 0; d < tensor.n_dims; ++d) {
        const Json & length = shape->items[static_cast<size_t>(tensor.n_dims - 1 - d)]; // ne runs the other way
        if (!is_whole(length) || length.integer == 0) {
            file.refuse(where + "dimension " + std::to_string(tensor.n_dims - 1 - d) + " is not a count above 0");
        }
        tensor.ne[d] = length.integer;
        if (static_cast<uint64_t>(length.integer) > static_cast<uint64_t>(std::numeric_limits<int64_t>::max()) / n_bytes) {
            file.refuse(where + "its shape is too large");
        }
        n_bytes *= static_cast<uint64_t>(length.integer);
    }
    const auto begin = static_cast<uint64_t>(extent->items[0].integer);
    const auto end = static_cast<uint64_t>(extent->items[1].integer);
    if (begin > end || end - begin != n_bytes) {
        file.refuse(where + "occupies bytes " + std::to_string(begin) + " to " + std::to_string(end) + ", but its shape " +
                    shape_text(tensor.ne, GGML_MAX_DIMS) + " needs " + std::to_string(n_bytes));
    }
    if (end > n_data) {
        const uint64_t n_header = file.mappings()[0]->size() - n_data;
        file.refuse(where + "ends at byte " + std::to_string(end) + " of the data (" + std::to_string(n_header) +
                    " bytes of header before it), but the file has " + std::to_string(n_header + n_data) + " bytes; it is incomplete");
    }
    if ((reinterpret_cast<uintptr_t>(data) + begin) % ggml_type_size(tensor.type) != 0) {
        file.refuse(where + "offset " + std::to_string(begin) + " is not on a boundary of its type");
    }
    tensor.data = data + begin;
    tensor.n_bytes = n_bytes;
    return tensor;
}

} // namespace

bool SafetensorsReader::is_safetensors(const Mapping & mapping) {
    return mapping.size() > 9 && little_u64(mapping.data()) <= mapping.size() && mapping.data()[8] == '{';
}

void SafetensorsReader::read(const std::string & path, const std::shared_ptr<const Mapping> & mapping, ModelFile & file) {
    const std::string folder = folder_of(path);
    file.path_ = path;
    file.mappings_.push_back(mapping);
    if (is_file(folder + "mask_embedding.pt")) {
        unsupported(file.label() + ": the draft has its mask in mask_embedding.pt, which is read from GGUF files only");
    }
    read_hf_config(folder, file.values_);
    read_tensors(*mapping, file.need_integer("dflash.block_count", 1, 1024), file);
}

void SafetensorsReader::read_tensors(const Mapping & mapping, int64_t n_layers, ModelFile & file) {
    const uint64_t n_header = little_u64(mapping.data()); // is_safetensors saw that the file has these bytes
    if (n_header > kMaxHeaderBytes || n_header > mapping.size() - 8) {
        file.refuse("header: " + std::to_string(n_header) + " bytes are impossible in a file of " + std::to_string(mapping.size()) +
                    " bytes; it is incomplete or damaged");
    }
    Json header;
    try {
        header = parse_json({reinterpret_cast<const char *>(mapping.data()) + 8, static_cast<size_t>(n_header)});
    } catch (const std::runtime_error & error) {
        file.refuse(std::string("header: ") + error.what());
    }
    const uint8_t * data = mapping.data() + 8 + n_header;
    const uint64_t n_data = mapping.size() - 8 - n_header;
    for (const auto & [name, entry] : header.members) {
        if (name == "__metadata__") {
            continue;
        }
        if (name == "d2t") {
            unsupported(file.label() + ": tensor 'd2t': the draft speaks a part of the target's vocabulary, which this version does not run");
        }
        const auto ours = gguf_name(name, n_layers);
        if (!ours) {
            unsupported(file.label() + ": tensor '" + printable(name) + "': is not known in a DFlash draft of " + std::to_string(n_layers) + " layers");
        }
        if (ours->empty()) {
            continue;
        }
        TensorInfo tensor = read_tensor(file, name, entry, data, n_data);
        tensor.name = *ours;
        if (!file.tensor_index_.emplace(tensor.name, file.tensors_.size()).second) {
            file.refuse("tensor '" + printable(name) + "': occurs twice");
        }
        file.tensors_.push_back(std::move(tensor));
    }
    std::vector<const TensorInfo *> order;
    order.reserve(file.tensors_.size());
    for (const TensorInfo & tensor : file.tensors_) {
        order.push_back(&tensor);
    }
    std::sort(order.begin(), order.end(), [](const TensorInfo * a, const TensorInfo * b) { return a->data < b->data; });
    for (size_t i = 1; i < order.size(); ++i) {
        if (order[i]->data < order[i - 1]->data + order[i - 1]->n_bytes) {
            file.refuse("tensor '" + order[i]->name + "': overlaps tensor '" + order[i - 1]->name + "'");
        }
    }
}

} // namespace dflash
