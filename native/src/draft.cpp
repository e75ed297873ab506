// The DFlash draft's graphs; see draft.h.
#include "draft.h"

#include <algorithm>
#include <cmath>

namespace dflash {

Draft::Draft(std::shared_ptr<const ModelFile> file_pointer, const Target & target)
    : target_(target),
      config_(read_draft_config(*file_pointer)),
      weights_(std::move(file_pointer), target.device()) {
    const ModelFile & file = weights_.file();
    require_fit(file, config_, {target.file().label(), target.n_layers(), target.n_embd(), target.n_vocab(), &target.file()});
    const int64_t n_features = static_cast<int64_t>(config_.feature_layers.size());
    const int64_t n_rot = file.integer(config_.prefix + "rope.dimension_count", 2, config_.head_dim).value_or(config_.head_dim);
    rope_ = read_rope(file, config_.prefix, n_rot - n_rot % 2, GGML_ROPE_TYPE_NEOX);
    const auto vector = [&](const std::string & name, int64_t n) { return weights_.add(file.need_tensor(name, {n}), Use::kVector); };
    // Hidden states of real targets have outliers that overflow half precision in this product.
    fc_ = weights_.add(file.need_tensor(config_.fc, {n_features * config_.n_embd, config_.n_embd}), Use::kWide);
    feature_norm_ = vector(config_.feature_norm, config_.n_embd);
    output_norm_ = vector("output_norm.weight", config_.n_embd);
    for (int i = 0; i < config_.n_layers; ++i) {
        const std::string block = "blk." + std::to_string(i) + ".";
        Layer layer;
        layer.attn_norm = vector(block + "attn_norm.weight", config_.n_embd);
        layer.q_norm = vector(block + "attn_q_norm.weight", config_.head_dim);
        layer.k_norm = vector(block + "attn_k_norm.weight", config_.head_dim);
        layer.ffn_norm = vector(block + "ffn_norm.weight", config_.n_embd);
        layer.q = add_linear(weights_, block + "attn_q", config_.n_embd, config_.head_dim * config_.n_head);
        layer.k = add_linear(weights_, block + "attn_k", config_.n_embd, config_.head_dim * config_.n_head_kv);
        layer.v = add_linear(weights_, block + "attn_v", config_.n_embd, config_.head_dim * config_.n_head_kv);
        layer.output = add_linear(weights_, block + "attn_output", config_.head_dim * config_.n_head, config_.n_embd);
        layer.ffn = add_swiglu(weights_, block, config_.n_embd, config_.n_ff);
        layers_.push_back(layer);
    }
    // A block the file describes but no graph uses would mean that the numbers above describe another model.
    if (file.tensor("blk." + std::to_string(config_.n_layers) + ".attn_norm.weight")) {
        file.refuse(format("%sblock_count is %d, but the file holds more layers.", config_.prefix.c_str(), config_.n_layers));
    }
}

std::vector<KvShape> Draft::kv_shapes() const {
    return std::vector<KvShape>(layers_.size(), {config_.head_dim, config_.head_dim, config_.n_head_kv});
}

ggml_tensor * Draft::keys(ggml_context * ctx, const Layer & layer, ggml_tensor * rows, ggml_tensor * positions) const {
    ggml_tensor * k = ggml_reshape_3d(ctx, apply(ctx, layer.k, rows), config_.head_dim, config_.n_head_kv, rows->ne[1]);
    k = apply_rope(ctx, rope_, rms_norm(ctx, k, layer.k_norm, config_.epsilon), positions);
    return ggml_reshape_2d(ctx, k, config_.head_dim * config_.n_head_kv, rows->ne[1]);
}

void Draft::write_context(Pass & pass, const KvCache & cache) const {
    ggml_context * ctx = pass.ctx.get();
    ggml_tensor * features = pass.features[0];
    for (size_t i = 1; i < pass.features.size(); ++i) {
        features = ggml_concat(ctx, features, pass.features[i], 0);
    }
    ggml_tensor * fused = rms_norm(ctx, ggml_mul_mat(ctx, fc_, features), feature_norm_, config_.epsilon);
    for (size_t i = 0; i < layers_.size(); ++i) {
        // Context rows take the fused features as they are; only block rows pass the layer's own norm.
        cache.write(ctx, pass.graph, i, keys(ctx, layers_[i], fused, pass.positions), apply(ctx, layers_[i].v, fused), pass.slots);
    }
}

void Draft::build(DraftPass & pass, const KvCache & cache) const {
    ggml_context * ctx = pass.ctx.get();
    const int64_t n = pass.n_rows;
    const float scale = 1.0f / std::sqrt(static_cast<float>(config_.head_dim));
    ggml_tensor * x = target_.embed(ctx, pass.tokens);
    for (size_t i = 0; i < layers_.size(); ++i) {
        const Layer & layer = layers_[i];
        ggml_tensor * h = rms_norm(ctx, x, layer.attn_norm, config_.epsilon);
        cache.write(ctx, pass.graph, i, keys(ctx, layer, h, pass.positions), apply(ctx, layer.v, h), pass.slots);
        ggml_tensor * q = ggml_reshape_3d(ctx, apply(ctx, layer.q, h), config_.head_dim, config_.n_head, n);
        q = apply_rope(ctx, rope_, rms_norm(ctx, q, layer.q_norm, config_.epsilon), pass.positions);
        ggml_tensor * mask = config_.is_sliding[i] ? pass.mask_sliding : pass.mask;
        x = ggml_add(ctx, x, apply(ctx, layer.output, attend(ctx, cache.layer(i), q, mask, pass.n_kv, scale)));
        x = ggml_add(ctx, x, apply(ctx, layer.ffn, rms_norm(ctx, x, layer.ffn_norm, config_.epsilon)));
    }
    pass.hidden = rms_norm(ctx, x, output_norm_, config_.epsilon);
    ggml_set_output(pass.hidden);
    // Row 0 stands for the root, which is known.
    ggml_tensor * drafted = ggml_view_2d(ctx, pass.hidden, config_.n_embd, n - 1, pass.hidden->nb[1], pass.hidden->nb[1]);
    ggml_tensor * probabilities = ggml_soft_max(ctx, target_.head(ctx, drafted));
    pass.ids = ggml_top_k(ctx, probabilities, pass.k);
    ggml_tensor * columns = ggml_reshape_3d(ctx, probabilities, 1, target_.n_vocab(), n - 1);
    pass.probabilities = ggml_get_rows(ctx, columns, pass.ids);
    ggml_set_output(pass.ids);
    ggml_set_output(pass.probabilities);
    ggml_build_forward_expand(pass.graph, pass.probabilities);
    ggml_build_forward_expand(pass.graph, pass.hidden);
}

} // namespace dflash
