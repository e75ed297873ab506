// What every target shares: vocabulary, embeddings, head, stop tokens; see target.h.
#include "target.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <set>

#include "log.h"

namespace dflash {

namespace {

// Families mark the end of a turn with texts of their own, and files often name only one of several ids.
constexpr std::array<const char *, 22> kStopTexts = {
    "<|eot_id|>",         "<|im_end|>", "<|end|>",    "<|return|>",  "<|call|>",      "<|flush|>",    "<|calls|>", "<end_of_turn>",
    "<|endoftext|>",      "</s>",       "<|eom_id|>", "<EOT>",       "_<EOT>",        "[EOT]",        "[EOS]",     "<|end_of_text|>",
    "<end_of_utterance>", "<eos>",      "<turn|>",    "<|fim_pad|>", "<|repo_name|>", "<|file_sep|>",
};

} // namespace

std::vector<int32_t> find_stop_tokens(const ModelFile & file, int64_t n_vocab) {
    std::set<int32_t> ids;
    for (const char * key : {"tokenizer.ggml.eos_token_id", "tokenizer.ggml.eot_token_id", "tokenizer.ggml.eom_token_id"}) {
        if (const auto id = file.integer(key, 0, UINT32_MAX)) {
            if (*id < n_vocab) {
                ids.insert(static_cast<int32_t>(*id));
            } else if (*id != INT32_MAX && *id != UINT32_MAX) { // converters write the largest number, or -1, for "none"
                file.refuse(format("%s: %lld is not a token: the vocabulary has %lld.", key, static_cast<long long>(*id), static_cast<long long>(n_vocab)));
            }
        }
    }
    const Value * tokens = file.find("tokenizer.ggml.tokens");
    if (tokens && tokens->kind == DFLASH_VALUE_STRINGS) {
        const std::set<std::string_view> texts(kStopTexts.begin(), kStopTexts.end());
        const uint8_t * at = tokens->data;
        for (uint64_t i = 0; i < tokens->count; ++i) {
            uint64_t length = 0;
            std::memcpy(&length, at, sizeof(length)); // lengths were checked when the file was opened
            const std::string_view text(reinterpret_cast<const char *>(at) + sizeof(length), static_cast<size_t>(length));
            if (text.size() < 24 && texts.count(text) > 0) {
                ids.insert(static_cast<int32_t>(i));
            }
            at += sizeof(length) + length;
        }
    }
    if (ids.empty()) {
        log_line(DFLASH_LOG_WARNING, file.label() + ": no stop token is known; replies end at the token limit only.");
    }
    return {ids.begin(), ids.end()};
}

Linear add_head(Weights & weights, int64_t n_embd, int64_t n_vocab) {
    if (weights.file().tensor("output.weight")) {
        return add_linear(weights, "output", n_embd, n_vocab);
    }
    Linear tied;
    tied.weight = weights.add(weights.file().need_tensor("token_embd.weight", {n_embd, n_vocab}), Use::kMatmul);
    tied.products = &weights.products();
    weights.products().add(tied.weight);
    return tied;
}

bool Target::knows(const std::string & architecture) {
    return architecture == "llama" || architecture == "qwen3" || architecture == "qwen35";
}

std::unique_ptr<Target> Target::open(std::shared_ptr<const ModelFile> file, const Device & device, int n_threads) {
    const std::string & architecture = file->architecture();
    std::unique_ptr<Target> target;
    if (architecture == "llama" || architecture == "qwen3") {
        target = open_llama(std::move(file), device);
    } else if (architecture == "qwen35") {
        target = open_qwen35(std::move(file), device);
    } else if (architecture.empty()) {
        file->refuse("general.architecture is missing, so it is not a language model.");
    } else {
        throw Error(DFLASH_UNSUPPORTED,
                    format("%s: architecture '%s' is not one that this engine runs (llama, qwen3, qwen35).", file->label().c_str(), architecture.c_str()));
    }
    target->n_threads_ = n_threads;
    return target;
}

Target::Target(std::shared_ptr<const ModelFile> file_pointer, const Device & device) : weights_(std::move(file_pointer), device, DFLASH_PART_WEIGHTS) {
    const ModelFile & file = weights_.file();
    prefix_ = file.architecture() + ".";
    n_embd_ = file.need_integer(prefix_ + "embedding_length", 1, 1 << 20);
    const int64_t n_blocks = file.need_integer(prefix_ + "block_count", 1, 1024);
    const int64_t n_mtp = file.integer(prefix_ + "nextn_predict_layers", 0, 1024).value_or(0);
    if (n_mtp >= n_blocks) {
        file.refuse(format("%snextn_predict_layers: %lld of %lld blocks leaves none to run.", prefix_.c_str(), static_cast<long long>(n_mtp),
                           static_cast<long long>(n_blocks)));
    }
    n_layers_ = static_cast<int>(n_blocks - n_mtp);
    context_tokens_ = static_cast<int>(std::min<int64_t>(file.need_integer(prefix_ + "context_length", 1, INT32_MAX), kMostContext));
    epsilon_ = static_cast<float>(file.need_real(prefix_ + "attention.layer_norm_rms_epsilon", 1e-12, 0.1));
    if (file.integer(prefix_ + "expert_count", 0, 1 << 20).value_or(0) > 0) {
        throw Error(DFLASH_UNSUPPORTED, file.label() + ": mixture-of-experts models are not supported yet.");
    }

    const TensorInfo * embeddings = file.tensor("token_embd.weight");
    if (!embeddings || embeddings->n_dims != 2 || embeddings->ne[0] != n_embd_ || embeddings->ne[1] > INT32_MAX) {
        file.need_tensor("token_embd.weight", {n_embd_, embeddings && embeddings->n_dims == 2 ? embeddings->ne[1] : 1});
    }
    n_vocab_ = embeddings->ne[1];
    if (const Value * tokens = file.find("tokenizer.ggml.tokens")) {
        if (static_cast<int64_t>(tokens->count) != n_vocab_) {
            file.refuse(format("tokenizer.ggml.tokens has %llu entries, but token_embd.weight has %lld rows.", static_cast<unsigned long long>(tokens->count),
                               static_cast<long long>(n_vocab_)));
        }
    }
    embeddings_ = weights_.add(*embeddings, Use::kRows);
    output_norm_ = weights_.add(file.need_tensor("output_norm.weight", {n_embd_}), Use::kVector);
    head_ = add_head(weights_, n_embd_, n_vocab_);
    stop_tokens_ = find_stop_tokens(file, n_vocab_);
}

void Target::read_heads() {
    const ModelFile & file = weights_.file();
    n_head_ = file.need_integer(prefix_ + "attention.head_count", 1, 1024);
    n_head_kv_ = file.integer(prefix_ + "attention.head_count_kv", 1, 1024).value_or(n_head_);
    if (n_head_ % n_head_kv_ != 0) {
        file.refuse(format("%sattention.head_count_kv: %lld does not divide head_count %lld.", prefix_.c_str(), static_cast<long long>(n_head_kv_),
                           static_cast<long long>(n_head_)));
    }
    head_dim_ = file.integer(prefix_ + "attention.key_length", 1, 4096).value_or(n_embd_ / n_head_);
}

int64_t Target::read_rotated() const {
    const ModelFile & file = weights_.file();
    const int64_t n_rot = file.integer(prefix_ + "rope.dimension_count", 2, 4096).value_or(head_dim_);
    if (n_rot > head_dim_ || n_rot % 2 != 0) {
        file.refuse(format("%srope.dimension_count: %lld does not fit heads of %lld.", prefix_.c_str(), static_cast<long long>(n_rot),
                           static_cast<long long>(head_dim_)));
    }
    return n_rot;
}

bool Target::is_output_read(const Pass & pass, int layer) {
    return pass.shape.has_logits || std::any_of(pass.feature_layers.begin(), pass.feature_layers.end(), [&](int wanted) { return wanted >= layer; });
}

ggml_tensor * Target::embed(ggml_context * ctx, ggml_tensor * tokens) const {
    return ggml_get_rows(ctx, embeddings_, tokens);
}

ggml_tensor * Target::head(ggml_context * ctx, ggml_tensor * hidden) const {
    return apply(ctx, head_, hidden);
}

void Target::build(Pass & pass, const Timeline & timeline) const {
    ggml_context * ctx = pass.ctx.get();
    ggml_tensor * x = run_layers(pass, timeline, embed(ctx, pass.tokens));
    if (pass.shape.has_logits) {
        pass.logits = head(ctx, rms_norm(ctx, x, output_norm_, epsilon_));
        ggml_set_output(pass.logits);
        pass.argmax = ggml_argmax(ctx, pass.logits);
        ggml_set_output(pass.argmax);
        ggml_build_forward_expand(pass.graph, pass.argmax);
    }
}

} // namespace dflash
