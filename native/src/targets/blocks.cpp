// Shared pieces of target and draft graphs; see blocks.h.
#include "blocks.h"

#include <algorithm>

namespace dflash {

namespace {

ggml_tensor * finish(ggml_context * ctx, const Linear & linear, ggml_tensor * y) {
    if (linear.scale) {
        y = ggml_mul(ctx, y, linear.scale);
    }
    if (linear.bias) {
        y = ggml_add(ctx, y, linear.bias);
    }
    return y;
}

Linear add_companions(Weights & weights, const std::string & name, int64_t n_out) {
    Linear linear;
    if (const TensorInfo * bias = weights.file().want_tensor(name + ".bias", {n_out})) {
        linear.bias = weights.add(*bias, Use::kVector);
    }
    if (const TensorInfo * scale = weights.file().want_tensor(name + ".scale", {1})) {
        linear.scale = weights.add(*scale, Use::kVector);
    }
    return linear;
}

} // namespace

Linear add_linear(Weights & weights, const std::string & name, int64_t n_in, int64_t n_out, Use use) {
    Linear linear = add_companions(weights, name, n_out);
    linear.weight = weights.add(weights.file().need_tensor(name + ".weight", {n_in, n_out}), use);
    linear.products = &weights.products();
    weights.products().add(linear.weight);
    return linear;
}

ggml_tensor * apply(ggml_context * ctx, const Linear & linear, ggml_tensor * x) {
    return finish(ctx, linear, linear.products ? linear.products->multiply(ctx, linear.weight, x) : ggml_mul_mat(ctx, linear.weight, x));
}

Bundle add_bundle(Weights & weights, int64_t n_in, const std::vector<BundlePart> & parts) {
    Bundle bundle;
    bundle.products = &weights.products();
    std::vector<const TensorInfo *> infos;
    for (const BundlePart & part : parts) {
        infos.push_back(&weights.file().need_tensor(part.name + ".weight", {n_in, part.n_out}));
        bundle.parts.push_back(add_companions(weights, part.name, part.n_out));
    }
    std::vector<bool> is_done(parts.size(), false);
    for (size_t i = 0; i < parts.size(); ++i) {
        if (is_done[i]) {
            continue;
        }
        Bundle::Group group;
        std::vector<const TensorInfo *> alike;
        for (size_t j = i; j < parts.size(); ++j) {
            if (!is_done[j] && infos[j]->type == infos[i]->type) {
                group.members.push_back(j);
                alike.push_back(infos[j]);
            }
        }
        std::vector<ggml_tensor *> tensors;
        group.stack = weights.add_stacked(alike, tensors);
        if (!group.stack) {
            group.members = {i};
            tensors = {weights.add(*infos[i], Use::kMatmul)};
        }
        weights.products().add(group.stack ? group.stack : tensors[0]);
        for (size_t m = 0; m < group.members.size(); ++m) {
            bundle.parts[group.members[m]].weight = tensors[m];
            bundle.parts[group.members[m]].products = bundle.products;
            is_done[group.members[m]] = true;
        }
        bundle.groups.push_back(std::move(group));
    }
    return bundle;
}

std::vector<ggml_tensor *> apply(ggml_context * ctx, const Bundle & bundle, ggml_tensor * x) {
    std::vector<ggml_tensor *> out(bundle.parts.size());
    for (const Bundle::Group & group : bundle.groups) {
        if (!group.stack) {
            out[group.members[0]] = apply(ctx, bundle.parts[group.members[0]], x);
            continue;
        }
        ggml_tensor * all = bundle.products->multiply(ctx, group.stack, x);
        size_t offset = 0;
        for (const size_t member : group.members) {
            const Linear & part = bundle.parts[member];
            ggml_tensor * rows = ggml_view_2d(ctx, all, part.weight->ne[1], all->ne[1], all->nb[1], offset);
            out[member] = finish(ctx, part, rows);
            offset += static_cast<size_t>(part.weight->ne[1]) * all->nb[0];
        }
    }
    return out;
}

std::vector<ggml_tensor *> apply_pair(ggml_context * ctx, const Bundle & bundle, ggml_tensor * x, size_t first) {
    const Linear & one = bundle.parts.at(first);
    const Linear & other = bundle.parts.at(first + 1);
    for (const Bundle::Group & group : bundle.groups) {
        const auto at = std::find(group.members.begin(), group.members.end(), first);
        if (!group.stack || at == group.members.end() || at + 1 == group.members.end() || at[1] != first + 1) {
            continue;
        }
        size_t offset = 0;
        for (auto before = group.members.begin(); before != at; ++before) {
            offset += static_cast<size_t>(bundle.parts[*before].weight->ne[1]) * group.stack->nb[1];
        }
        ggml_tensor * both = ggml_view_2d(ctx, group.stack, group.stack->ne[0], one.weight->ne[1] + other.weight->ne[1], group.stack->nb[1], offset);
        ggml_tensor * all = ggml_mul_mat(ctx, both, x);
        ggml_tensor * rest = ggml_view_2d(ctx, all, other.weight->ne[1], x->ne[1], all->nb[1], static_cast<size_t>(one.weight->ne[1]) * all->nb[0]);
        return {finish(ctx, one, ggml_view_2d(ctx, all, one.weight->ne[1], x->ne[1], all->nb[1], 0)), finish(ctx, other, rest)};
    }
    return {apply(ctx, one, x), apply(ctx, other, x)};
}

ggml_tensor * heads_of(ggml_context * ctx, ggml_tensor * rows, int64_t head_dim) {
    return ggml_view_3d(ctx, rows, head_dim, rows->ne[0] / head_dim, rows->ne[1], static_cast<size_t>(head_dim) * rows->nb[0], rows->nb[1], 0);
}

ggml_tensor * dense(ggml_context * ctx, ggml_tensor * x) {
    return ggml_is_contiguous(x) ? x : ggml_cont(ctx, x);
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

ggml_tensor * attend(ggml_context * ctx, const KvLayer & cache, ggml_tensor * q, ggml_tensor * mask, int64_t n_kv, float scale, int64_t first,
                     int64_t n_streams) {
    const KvShape & shape = cache.shape;
    const auto heads = [&](ggml_tensor * rows, int64_t head_dim) {
        return ggml_view_4d(ctx, rows, head_dim, n_kv, shape.n_head_kv, n_streams, rows->nb[1], ggml_row_size(rows->type, head_dim),
                            static_cast<size_t>(n_kv) * rows->nb[1], static_cast<size_t>(first) * rows->nb[1]);
    };
    ggml_tensor * k = heads(cache.k, shape.head_dim_k);
    ggml_tensor * v = heads(cache.v, shape.head_dim_v);
    const int64_t n = q->ne[2];
    if (n_streams > 1) {
        q = ggml_view_4d(ctx, q, q->ne[0], q->ne[1], n / n_streams, n_streams, q->nb[1], q->nb[2], q->nb[2] * static_cast<size_t>(n / n_streams), 0);
    }
    ggml_tensor * out = ggml_flash_attn_ext(ctx, ggml_permute(ctx, q, 0, 2, 1, 3), k, v, mask, scale, 0.0f, 0.0f);
    ggml_prec_set_acc(out, GGML_PREC_F32);
    return ggml_reshape_2d(ctx, out, out->ne[0] * out->ne[1], n);
}

bool collect(Pass & pass, size_t attention_layer, ggml_tensor * q, ggml_tensor * k) {
    if (!pass.tap || attention_layer < static_cast<size_t>(pass.tap->first)) {
        return false;
    }
    ggml_context * ctx = pass.ctx.get();
    const size_t index = attention_layer - static_cast<size_t>(pass.tap->first);
    const auto rows_of = [&](ggml_tensor * heads) { return ggml_reshape_2d(ctx, dense(ctx, heads), heads->ne[0] * heads->ne[1], heads->ne[2]); };
    ggml_tensor * queries = pass.tap->queries[index];
    if (q->ne[2] <= queries->ne[1]) {
        ggml_tensor * rows = rows_of(q);
        ggml_build_forward_expand(pass.graph, ggml_cpy(ctx, rows, ggml_view_2d(ctx, queries, rows->ne[0], rows->ne[1], queries->nb[1], 0)));
    }
    ggml_build_forward_expand(pass.graph, ggml_set_rows(ctx, pass.tap->keys[index], rows_of(k), pass.key_slots));
    return index + 1 == pass.tap->keys.size();
}

SwiGlu add_swiglu(Weights & weights, const std::string & prefix, int64_t n_embd, int64_t n_ff) {
    const Bundle bundle = add_bundle(weights, n_embd, {{prefix + "ffn_gate", n_ff}, {prefix + "ffn_up", n_ff}});
    return {bundle.parts[0], bundle.parts[1], add_linear(weights, prefix + "ffn_down", n_ff, n_embd), bundle.groups[0].stack};
}

ggml_tensor * apply(ggml_context * ctx, const SwiGlu & ffn, ggml_tensor * x, bool is_gelu) {
    ggml_tensor * gate = nullptr;
    ggml_tensor * up = nullptr;
    if (ffn.gate_up && x->ne[1] > 1) {
        ggml_tensor * both = ffn.gate.products->multiply(ctx, ffn.gate_up, x);
        const int64_t n = ffn.gate.weight->ne[1];
        gate = finish(ctx, ffn.gate, ggml_view_2d(ctx, both, n, x->ne[1], both->nb[1], 0));
        up = finish(ctx, ffn.up, ggml_view_2d(ctx, both, n, x->ne[1], both->nb[1], static_cast<size_t>(n) * both->nb[0]));
    } else { // GPUs compute two products of one row and their activation in one go
        gate = apply(ctx, ffn.gate, x);
        up = apply(ctx, ffn.up, x);
    }
    return apply(ctx, ffn.down, is_gelu ? ggml_geglu_split(ctx, gate, up) : ggml_swiglu_split(ctx, gate, up));
}

} // namespace dflash
