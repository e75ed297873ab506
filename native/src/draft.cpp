// The DFlash draft's graphs; see draft.h.
#include "draft.h"

namespace dflash {

namespace {

// Lucebox writes YaRN's numbers without saying that they are YaRN's.
Rope read_draft_rope(const ModelFile & file, const DraftConfig & config) {
    const std::string prefix = file.find(config.prefix + "rope.freq_base") ? config.prefix : "dflash.";
    const int64_t n_rot = file.integer(prefix + "rope.dimension_count", 2, config.head_dim).value_or(config.head_dim);
    Rope rope = read_rope(file, prefix, n_rot - n_rot % 2, GGML_ROPE_TYPE_NEOX);
    const std::string scaling = prefix + "rope.scaling.";
    if (!file.find(scaling + "type") && file.find(scaling + "factor")) {
        rope.scale = 1;
        if (file.find(scaling + "original_context_length")) {
            rope.scale = static_cast<float>(1.0 / file.need_real(scaling + "factor", 1e-3, 1e6));
            rope.ext_factor = 1;
            rope.attn_factor = static_cast<float>(file.real(scaling + "attn_factor", 0.0, 1e3).value_or(1.0));
            rope.beta_fast = static_cast<float>(file.real(scaling + "beta_fast", 0.0, 1e4).value_or(32.0));
            rope.beta_slow = static_cast<float>(file.real(scaling + "beta_slow", 0.0, 1e4).value_or(1.0));
        }
    }
    return rope;
}

} // namespace

Draft::Draft(std::shared_ptr<const ModelFile> file_pointer, const Target & target, const Place & place)
    : target_(target),
      place_(place),
      config_(read_draft_config(*file_pointer)),
      weights_(std::move(file_pointer), place.device, DFLASH_PART_DRAFT),
      borrowed_(place.is_apart ? std::make_unique<Weights>(target.share_file(), place.device, DFLASH_PART_DRAFT) : nullptr) {
    const ModelFile & file = weights_.file();
    require_fit(file, config_, {target.file().label(), target.n_layers(), target.n_embd(), target.n_vocab(), &target.file()});
    rope_ = read_draft_rope(file, config_);
    if (const TensorInfo * factors = file.want_tensor("rope_freqs.weight", {rope_.n_dims / 2})) {
        rope_.factors = weights_.add(*factors, Use::kVector);
    }
    const auto vector = [&](const std::string & name) { return weights_.add(file.need_tensor(name, {config_.n_embd}), Use::kVector); };
    // Hidden states of real targets have outliers that overflow half precision in this product.
    const std::string fc = tensor_name(file, {"fc.weight", "dflash.fc.weight", "dflash_fc.weight"});
    fc_ = weights_.add(file.need_tensor(fc, {config_.n_features * config_.n_embd, config_.n_embd}), Use::kWide);
    weights_.products().add(fc_);
    feature_norm_ = vector(tensor_name(file, {"enc.output_norm.weight", "dflash.hidden_norm.weight", "dflash_hidden_norm.weight"}));
    output_norm_ = vector("output_norm.weight");
    if (file.tensor("dflash.aux_hidden_norm.0.weight")) {
        for (int i = 0; i < config_.n_features; ++i) {
            feature_norms_.push_back(vector("dflash.aux_hidden_norm." + std::to_string(i) + ".weight"));
        }
    }
    if (file.tensor("token_embd.weight")) {
        embeddings_ = weights_.add(file.need_tensor("token_embd.weight", {config_.n_embd, target.n_vocab()}), Use::kRows);
    }
    if (!embeddings_ && borrowed_) {
        embeddings_ = borrowed_->add(borrowed_->file().need_tensor("token_embd.weight", {target.n_embd(), target.n_vocab()}), Use::kRows);
    }
    for (int i = 0; i < config_.n_layers; ++i) {
        layers_.push_back(read_layer("blk." + std::to_string(i) + "."));
    }
    head_.emplace(weights_, borrowed_.get(), config_, target);
}

Draft::Place place_of(const dflash_load_params & params, const Target & target) {
    const Device device = device_at(params.device);
    return {device, params.n_threads, params.is_apart != 0 || device.index != target.device().index};
}

std::vector<Products *> Draft::products() const {
    std::vector<Products *> all = {&weights_.products()};
    if (borrowed_) {
        all.push_back(&borrowed_->products());
    }
    return all;
}

void Draft::pretend() {
    weights_.pretend();
    if (borrowed_) {
        borrowed_->pretend();
    }
}

void Draft::allocate() {
    weights_.allocate();
    if (borrowed_) {
        borrowed_->allocate();
    }
}

bool Draft::load_next() {
    const bool has_more = weights_.load_next();
    return has_more || (borrowed_ && borrowed_->load_next());
}

uint64_t Draft::bytes_done() const {
    return weights_.bytes_done() + (borrowed_ ? borrowed_->bytes_done() : 0);
}

uint64_t Draft::bytes_total() const {
    return weights_.bytes_total() + (borrowed_ ? borrowed_->bytes_total() : 0);
}

bool Draft::is_loaded() const {
    return weights_.is_loaded() && (!borrowed_ || borrowed_->is_loaded());
}

uint64_t Draft::device_bytes() const {
    return weights_.device_bytes() + (borrowed_ ? borrowed_->device_bytes() : 0);
}

Draft::Layer Draft::read_layer(const std::string & block) {
    const ModelFile & file = weights_.file();
    const int64_t n_embd = config_.n_embd;
    const int64_t n_out = config_.head_dim * config_.n_head;
    const auto vector = [&](const std::string & name, int64_t n) { return weights_.add(file.need_tensor(block + name, {n}), Use::kVector); };
    // All layers have a part or none: `blk.0.` speaks for them.
    const auto has = [&](const std::string & name) { return file.tensor("blk.0." + name) || file.tensor(block + name); };
    Layer layer;
    layer.attn_norm = vector("attn_norm.weight", n_embd);
    layer.q_norm = vector("attn_q_norm.weight", config_.head_dim);
    layer.k_norm = vector("attn_k_norm.weight", config_.head_dim);
    // Where there is no ffn_norm, Lucebox' post_attention_norm is it; beside one it norms attention's output.
    const bool has_ffn_norm = has("ffn_norm.weight");
    layer.ffn_norm = vector(has_ffn_norm ? "ffn_norm.weight" : has("post_attention_norm.weight") ? "post_attention_norm.weight" : "ffn_norm.weight", n_embd);
    const int64_t n_kv = config_.head_dim * config_.n_head_kv;
    layer.qkv = add_bundle(weights_, n_embd, {{block + "attn_q", n_out}, {block + "attn_k", n_kv}, {block + "attn_v", n_kv}});
    layer.output = add_linear(weights_, block + "attn_output", n_out, n_embd);
    layer.ffn = add_swiglu(weights_, block, n_embd, config_.n_ff);
    if (has("attn_gate.weight")) {
        const TensorInfo * gate = file.tensor(block + "attn_gate.weight");
        layer.gate = add_linear(weights_, block + "attn_gate", n_embd, gate && gate->ne[1] == n_out ? n_out : config_.n_head);
    }
    if (has_ffn_norm && has("post_attention_norm.weight")) {
        layer.attn_output_norm = vector("post_attention_norm.weight", n_embd);
    }
    if (has("post_ffw_norm.weight")) {
        layer.ffn_output_norm = vector("post_ffw_norm.weight", n_embd);
    }
    if (has("layer_output_scale.weight")) {
        layer.scale = vector("layer_output_scale.weight", 1);
    }
    if (config_.kind == DraftKind::kDFlash2) {
        layer.attn_conv.emplace(weights_, block, "attn", n_embd, config_.conv_taps, config_.conv_group);
        layer.ffn_conv.emplace(weights_, block, "ffn", n_embd, config_.conv_taps, config_.conv_group);
    }
    return layer;
}

std::vector<KvShape> Draft::kv_shapes() const {
    return std::vector<KvShape>(layers_.size(), {config_.head_dim, config_.head_dim, config_.n_head_kv});
}

ggml_tensor * Draft::embed(ggml_context * ctx, ggml_tensor * tokens) const {
    ggml_tensor * rows = embeddings_ ? ggml_get_rows(ctx, embeddings_, tokens) : target_.embed(ctx, tokens);
    return config_.embedding_scale != 1 ? ggml_scale(ctx, rows, config_.embedding_scale) : rows;
}

ggml_tensor * Draft::keys(ggml_context * ctx, const Layer & layer, ggml_tensor * k, ggml_tensor * positions) const {
    k = apply_rope(ctx, rope_, rms_norm(ctx, heads_of(ctx, k, config_.head_dim), layer.k_norm, config_.epsilon), positions);
    return ggml_reshape_2d(ctx, k, config_.head_dim * config_.n_head_kv, k->ne[2]);
}

void Draft::write_context(Pass & pass, const KvCache & cache) const {
    write_context(pass.ctx.get(), pass.graph, pass.features, pass.positions, pass.slots, cache);
}

int64_t Draft::n_kept_values() const {
    return fc_->ne[0];
}

void Draft::keep_features(Pass & pass, ggml_tensor * kept) const {
    ggml_context * ctx = pass.ctx.get();
    ggml_tensor * features = nullptr;
    for (ggml_tensor * feature : pass.features) {
        features = features ? ggml_concat(ctx, features, feature, 0) : feature;
    }
    ggml_build_forward_expand(pass.graph, ggml_set_rows(ctx, kept, features, pass.kept_slots));
}

void Draft::write_context(ContextPass & pass, ggml_tensor * kept, const KvCache & cache) const {
    ggml_context * ctx = pass.ctx.get();
    const int64_t n = pass.positions->ne[0];
    const auto part = [&](int64_t n_values, int64_t first) {
        return ggml_view_2d(ctx, kept, n_values, n, kept->nb[1], static_cast<size_t>(first) * kept->nb[0]);
    };
    std::vector<ggml_tensor *> features;
    if (feature_norms_.empty()) {
        features.push_back(part(n_kept_values(), 0)); // they lie side by side as the fc wants them
    }
    for (size_t i = 0; i < feature_norms_.size(); ++i) {
        const int64_t width = feature_norms_[i]->ne[0];
        features.push_back(part(width, static_cast<int64_t>(i) * width));
    }
    write_context(ctx, pass.graph, features, pass.positions, pass.slots, cache);
}

void Draft::write_context(ggml_context * ctx, ggml_cgraph * graph, const std::vector<ggml_tensor *> & of_layers, ggml_tensor * positions, ggml_tensor * slots,
                          const KvCache & cache) const {
    ggml_tensor * features = nullptr;
    for (size_t i = 0; i < of_layers.size(); ++i) {
        ggml_tensor * feature = feature_norms_.empty() ? of_layers[i] : rms_norm(ctx, of_layers[i], feature_norms_[i], config_.epsilon);
        features = features ? ggml_concat(ctx, features, feature, 0) : feature;
    }
    ggml_tensor * fused = rms_norm(ctx, weights_.products().multiply(ctx, fc_, features), feature_norm_, config_.epsilon);
    for (size_t i = 0; i < layers_.size(); ++i) {
        // Most drafts take the fused features as they are; only block rows pass the layer's own norm.
        ggml_tensor * rows = config_.is_context_normed ? rms_norm(ctx, fused, layers_[i].attn_norm, config_.epsilon) : fused;
        const std::vector<ggml_tensor *> kv = apply_pair(ctx, layers_[i].qkv, rows, 1);
        cache.write(ctx, graph, i, keys(ctx, layers_[i], kv[0], positions), kv[1], slots);
    }
}

ggml_tensor * Draft::attention(DraftPass & pass, const KvCache & cache, size_t index, ggml_tensor * rows) const {
    ggml_context * ctx = pass.ctx.get();
    const Layer & layer = layers_[index];
    const int64_t n = rows->ne[1];
    ggml_tensor * kernels = layer.attn_conv ? layer.attn_conv->kernels(ctx, rows) : nullptr;
    ggml_tensor * h = kernels ? layer.attn_conv->filter(ctx, rows, kernels, 0) : rows;
    const std::vector<ggml_tensor *> qkv = apply(ctx, layer.qkv, h);
    ggml_tensor * q = heads_of(ctx, qkv[0], config_.head_dim);
    q = apply_rope(ctx, rope_, rms_norm(ctx, q, layer.q_norm, config_.epsilon), pass.positions);
    ggml_build_forward_expand(pass.graph, q); // before the cache is written: see KvCache::write
    cache.write(ctx, pass.graph, index, keys(ctx, layer, qkv[1], pass.positions), qkv[2], pass.slots);
    ggml_tensor * out = config_.is_sliding[index]
                            ? attend(ctx, cache.layer(index), q, pass.mask_sliding, pass.n_kv - pass.first_sliding, config_.attention_scale, pass.first_sliding)
                            : attend(ctx, cache.layer(index), q, pass.mask, pass.n_kv, config_.attention_scale);
    if (config_.value_scale != 1) {
        out = ggml_scale(ctx, out, config_.value_scale);
    }
    if (layer.gate.weight) {
        ggml_tensor * gate = ggml_softplus(ctx, apply(ctx, layer.gate, h));
        if (gate->ne[0] == config_.n_head) { // one value per head
            out = ggml_mul(ctx, ggml_reshape_3d(ctx, out, config_.head_dim, config_.n_head, n), ggml_reshape_3d(ctx, gate, 1, config_.n_head, n));
            out = ggml_reshape_2d(ctx, out, config_.head_dim * config_.n_head, n);
        } else {
            out = ggml_mul(ctx, out, gate);
        }
    }
    out = apply(ctx, layer.output, out);
    out = kernels ? layer.attn_conv->filter(ctx, out, kernels, 1) : out;
    return layer.attn_output_norm ? rms_norm(ctx, out, layer.attn_output_norm, config_.epsilon) : out;
}

ggml_tensor * Draft::feed_forward(ggml_context * ctx, const Layer & layer, ggml_tensor * rows) const {
    ggml_tensor * kernels = layer.ffn_conv ? layer.ffn_conv->kernels(ctx, rows) : nullptr;
    ggml_tensor * h = kernels ? layer.ffn_conv->filter(ctx, rows, kernels, 0) : rows;
    ggml_tensor * out = apply(ctx, layer.ffn, h, config_.is_gelu);
    out = kernels ? layer.ffn_conv->filter(ctx, out, kernels, 1) : out;
    return layer.ffn_output_norm ? rms_norm(ctx, out, layer.ffn_output_norm, config_.epsilon) : out;
}

void Draft::build(DraftPass & pass, const KvCache & cache) const {
    ggml_context * ctx = pass.ctx.get();
    ggml_tensor * x = embed(ctx, pass.tokens);
    for (size_t i = 0; i < layers_.size(); ++i) {
        const Layer & layer = layers_[i];
        x = ggml_add(ctx, x, attention(pass, cache, i, rms_norm(ctx, x, layer.attn_norm, config_.epsilon)));
        x = ggml_add(ctx, x, feed_forward(ctx, layer, rms_norm(ctx, x, layer.ffn_norm, config_.epsilon)));
        if (layer.scale) {
            x = ggml_mul(ctx, x, layer.scale);
        }
    }
    pass.hidden = rms_norm(ctx, x, output_norm_, config_.epsilon);
    ggml_set_output(pass.hidden);
    ggml_build_forward_expand(pass.graph, pass.hidden);
    const int64_t first = config_.first_row();
    ggml_tensor * drafted =
        ggml_view_2d(ctx, pass.hidden, config_.n_embd, pass.n_rows - first, pass.hidden->nb[1], static_cast<size_t>(first) * pass.hidden->nb[1]);
    head_->build(pass, drafted);
}

} // namespace dflash
