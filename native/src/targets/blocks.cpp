// Shared pieces of target and draft graphs; see blocks.h.
#include "blocks.h"

#include <algorithm>

namespace dflash {

Linear add_linear(Weights & weights, const std::string & name, int64_t n_in, int64_t n_out, Use use) {
    const ModelFile & file = weights.file();
    Linear linear;
    linear.weight = weights.add(file.need_tensor(name + ".weight", {n_in, n_out}), use);
    if (const TensorInfo * bias = file.want_tensor(name + ".bias", {n_out})) {
        linear.bias = weights.add(*bias, Use::kVector);
    }
    if (const TensorInfo * scale = file.want_tensor(name + ".scale", {1})) {
        linear.scale = weights.add(*scale, Use::kVector);
    }
    return linear;
}

ggml_tensor * apply(ggml_context * ctx, const Linear & linear, ggml_tensor * x) {
    ggml_tensor * y = ggml_mul_mat(ctx, linear.weight, x);
    if (linear.scale) {
        y = ggml_mul(ctx, y, linear.scale);
    }
    if (linear.bias) {
        y = ggml_add(ctx, y, linear.bias);
    }
    return y;
}

ggml_tensor * rms_norm(ggml_context * ctx, ggml_tensor * x, ggml_tensor * weight, float epsilon) {
    return ggml_mul(ctx, ggml_rms_norm(ctx, x, epsilon), weight);
}

Rope read_rope(const ModelFile & file, const std::string & prefix, int64_t n_dims, int mode) {
    Rope rope;
    rope.n_dims = static_cast<int>(n_dims);
    rope.mode = mode;
    rope.base = static_cast<float>(file.real(prefix + "rope.freq_base", 1.0, 1e12).value_or(10000.0));
    const int64_t trained = file.integer(prefix + "context_length", 1, INT32_MAX).value_or(4096);
    rope.n_original_context = static_cast<int>(file.integer(prefix + "rope.scaling.original_context_length", 1, INT32_MAX).value_or(trained));
    const std::string type = file.text(prefix + "rope.scaling.type").value_or("linear");
    double factor = file.real(prefix + "rope.scaling.factor", 0.0, 1e6).value_or(0.0);
    if (factor == 0.0) {
        factor = file.real(prefix + "rope.scale_linear", 0.0, 1e6).value_or(0.0);
    }
    if (factor == 0.0) {
        factor = 1.0; // 0 is how files say "none"
    }
    if (type == "linear") {
        rope.scale = static_cast<float>(1.0 / factor);
    } else if (type == "yarn") {
        rope.scale = static_cast<float>(1.0 / factor);
        rope.ext_factor = 1.0f;
        rope.attn_factor = static_cast<float>(file.real(prefix + "rope.scaling.attn_factor", 0.0, 1e3).value_or(1.0));
        rope.beta_fast = static_cast<float>(file.real(prefix + "rope.scaling.yarn_beta_fast", 0.0, 1e4).value_or(32.0));
        rope.beta_slow = static_cast<float>(file.real(prefix + "rope.scaling.yarn_beta_slow", 0.0, 1e4).value_or(1.0));
    } else if (type != "none") {
        throw Error(DFLASH_UNSUPPORTED,
                    format("%s: %srope.scaling.type is '%s'; this engine knows none, linear and yarn.", file.label().c_str(), prefix.c_str(), type.c_str()));
    }
    return rope;
}

ggml_tensor * apply_rope(ggml_context * ctx, const Rope & rope, ggml_tensor * x, ggml_tensor * positions) {
    return ggml_rope_ext(ctx, x, positions, rope.factors, rope.n_dims, rope.mode, rope.n_original_context, rope.base, rope.scale, rope.ext_factor,
                         rope.attn_factor, rope.beta_fast, rope.beta_slow);
}

ggml_tensor * attend(ggml_context * ctx, const KvLayer & cache, ggml_tensor * q, ggml_tensor * mask, int64_t n_kv, float scale, int64_t first) {
    const KvShape & shape = cache.shape;
    const auto heads = [&](ggml_tensor * rows, int64_t head_dim) {
        return ggml_view_3d(ctx, rows, head_dim, n_kv, shape.n_head_kv, rows->nb[1], ggml_row_size(rows->type, head_dim),
                            static_cast<size_t>(first) * rows->nb[1]);
    };
    ggml_tensor * k = heads(cache.k, shape.head_dim_k);
    ggml_tensor * v = heads(cache.v, shape.head_dim_v);
    ggml_tensor * out = ggml_flash_attn_ext(ctx, ggml_permute(ctx, q, 0, 2, 1, 3), k, v, mask, scale, 0.0f, 0.0f);
    ggml_prec_set_acc(out, GGML_PREC_F32);
    return ggml_reshape_2d(ctx, out, out->ne[0] * out->ne[1], out->ne[2]);
}

SwiGlu add_swiglu(Weights & weights, const std::string & prefix, int64_t n_embd, int64_t n_ff) {
    return {add_linear(weights, prefix + "ffn_gate", n_embd, n_ff), add_linear(weights, prefix + "ffn_up", n_embd, n_ff),
            add_linear(weights, prefix + "ffn_down", n_ff, n_embd)};
}

ggml_tensor * apply(ggml_context * ctx, const SwiGlu & ffn, ggml_tensor * x) {
    ggml_tensor * gate = apply(ctx, ffn.gate, x);
    ggml_tensor * up = apply(ctx, ffn.up, x);
    return apply(ctx, ffn.down, ggml_swiglu_split(ctx, gate, up));
}

} // namespace dflash
