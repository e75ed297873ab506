// Dense decoders: `llama` (SmolLM2, Llama 2 and 3) and `qwen3` (per-head norms on queries and keys, NEOX rotation).
#include <cmath>

#include "target.h"

namespace dflash {

namespace {

struct Layer {
    ggml_tensor * attn_norm = nullptr;
    ggml_tensor * q_norm = nullptr; // qwen3 only
    ggml_tensor * k_norm = nullptr;
    ggml_tensor * ffn_norm = nullptr;
    Bundle qkv;
    Linear output;
    SwiGlu ffn;
};

class Llama final : public Target {
  public:
    Llama(std::shared_ptr<const ModelFile> file_pointer, const Device & device) : Target(std::move(file_pointer), device) {
        const ModelFile & file = weights_.file();
        const bool is_qwen3 = file.architecture() == "qwen3";
        read_heads();
        const int64_t head_dim_v = file.integer(prefix_ + "attention.value_length", 1, 4096).value_or(head_dim_);
        const int64_t n_rot = read_rotated();
        const int64_t n_ff = file.need_integer(prefix_ + "feed_forward_length", 1, 1 << 24);
        rope_ = read_rope(file, prefix_, n_rot, is_qwen3 ? GGML_ROPE_TYPE_NEOX : GGML_ROPE_TYPE_NORMAL);
        if (const TensorInfo * factors = file.want_tensor("rope_freqs.weight", {n_rot / 2})) {
            rope_.factors = weights_.add(*factors, Use::kVector);
        }
        for (int i = 0; i < n_layers_; ++i) {
            const std::string block = "blk." + std::to_string(i) + ".";
            const auto vector = [&](const char * name, int64_t n) { return weights_.add(file.need_tensor(block + name + ".weight", {n}), Use::kVector); };
            Layer layer;
            layer.attn_norm = vector("attn_norm", n_embd_);
            layer.ffn_norm = vector("ffn_norm", n_embd_);
            if (is_qwen3) {
                layer.q_norm = vector("attn_q_norm", head_dim_);
                layer.k_norm = vector("attn_k_norm", head_dim_);
            }
            layer.qkv =
                add_bundle(weights_, n_embd_,
                           {{block + "attn_q", head_dim_ * n_head_}, {block + "attn_k", head_dim_ * n_head_kv_}, {block + "attn_v", head_dim_v * n_head_kv_}});
            layer.output = add_linear(weights_, block + "attn_output", head_dim_v * n_head_, n_embd_);
            layer.ffn = add_swiglu(weights_, block, n_embd_, n_ff);
            layers_.push_back(layer);
            kv_shapes_.push_back({head_dim_, head_dim_v, n_head_kv_});
        }
    }

  private:
    ggml_tensor * run_layers(Pass & pass, const Timeline & timeline, ggml_tensor * x) const override {
        ggml_context * ctx = pass.ctx.get();
        const int64_t n = pass.shape.n_rows;
        const float scale = 1.0f / std::sqrt(static_cast<float>(head_dim_));
        for (int i = 0; i < n_layers_; ++i) {
            const Layer & layer = layers_[static_cast<size_t>(i)];
            ggml_tensor * h = rms_norm(ctx, x, layer.attn_norm, epsilon_);
            const std::vector<ggml_tensor *> qkv = apply(ctx, layer.qkv, h);
            ggml_tensor * q = heads_of(ctx, qkv[0], head_dim_);
            ggml_tensor * k = heads_of(ctx, qkv[1], head_dim_);
            if (layer.q_norm) {
                q = rms_norm(ctx, q, layer.q_norm, epsilon_);
                k = rms_norm(ctx, k, layer.k_norm, epsilon_);
            }
            if (collect(pass, static_cast<size_t>(i), q, k)) {
                return nullptr;
            }
            q = apply_rope(ctx, rope_, q, pass.positions);
            k = apply_rope(ctx, rope_, k, pass.positions);
            const bool is_needed = i < n_layers_ - 1 || is_output_read(pass, i);
            if (is_needed) {
                ggml_build_forward_expand(pass.graph, q); // before the cache is written: see KvCache::write
            }
            timeline.kv.write(ctx, pass.graph, static_cast<size_t>(i), ggml_reshape_2d(ctx, k, head_dim_ * n_head_kv_, n), qkv[2], pass.slots);
            if (!is_needed) {
                return nullptr;
            }
            ggml_tensor * attended =
                attend(ctx, timeline.kv.layer(static_cast<size_t>(i)), q, pass.mask, pass.n_seen(), scale, pass.first_slot, pass.n_streams);
            x = ggml_add(ctx, x, apply(ctx, layer.output, attended));
            x = ggml_add(ctx, x, apply(ctx, layer.ffn, rms_norm(ctx, x, layer.ffn_norm, epsilon_)));
            pass.after_layer(i, x);
        }
        return x;
    }

    Rope rope_;
    std::vector<Layer> layers_;
};

} // namespace

std::unique_ptr<Target> open_llama(std::shared_ptr<const ModelFile> file, const Device & device) {
    return std::make_unique<Llama>(std::move(file), device);
}

} // namespace dflash
