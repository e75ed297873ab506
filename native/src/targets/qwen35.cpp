// `qwen35` (Qwen3.5, 3.6, 3.8 dense): three gated DeltaNet layers, then one gated full-attention layer, and so on.
// A tree is verified as one chunk of the delta rule under the ancestor mask; no state per node exists. The committed
// state moves only in appends and in the commit, which replays the accepted rows.
#include <cmath>

#include "target.h"

namespace dflash {

namespace {

struct Attention {
    Bundle qkv; // q per head: query, then gate
    Linear output;
    ggml_tensor * q_norm = nullptr;
    ggml_tensor * k_norm = nullptr;
    size_t kv_index = 0;
};

struct DeltaNet {
    Bundle in; // qkv, z, beta, alpha
    Linear output;
    ggml_tensor * conv = nullptr;            // [K_c, C], for the convolution op
    ggml_tensor * conv_transposed = nullptr; // [C, 1, K_c], for gathered rows
    ggml_tensor * dt = nullptr;              // [H_v]
    ggml_tensor * a = nullptr;               // [H_v], -exp(A_log)
    ggml_tensor * norm = nullptr;            // [S]
    size_t state_index = 0;
};

struct Layer {
    bool is_recurrent = false;
    ggml_tensor * attn_norm = nullptr;
    ggml_tensor * ffn_norm = nullptr; // post_attention_norm in the file
    Attention attention;
    DeltaNet delta;
    SwiGlu ffn;
};

class Qwen35 final : public Target {
  public:
    Qwen35(std::shared_ptr<const ModelFile> file_pointer, const Device & device) : Target(std::move(file_pointer), device) {
        const ModelFile & file = weights_.file();
        if (!file.tensor("blk.0.attn_norm.weight")) {
            throw Error(DFLASH_UNSUPPORTED, file.label() + ": it holds only the multi-token-prediction layers of a model, not a target.");
        }
        read_heads();
        const int64_t head_dim_v = file.integer(prefix_ + "attention.value_length", 1, 4096).value_or(head_dim_);
        if (head_dim_v != head_dim_) {
            file.refuse(format("%sattention.value_length: %lld is not the width of the keys, %lld.", prefix_.c_str(), static_cast<long long>(head_dim_v),
                               static_cast<long long>(head_dim_)));
        }
        read_positions(file);
        const int64_t n_ff = file.need_integer(prefix_ + "feed_forward_length", 1, 1 << 24);
        shape_.state_size = file.need_integer(prefix_ + "ssm.state_size", 1, 1024);
        shape_.n_head_k = file.need_integer(prefix_ + "ssm.group_count", 1, 1024);
        shape_.n_head_v = file.need_integer(prefix_ + "ssm.time_step_rank", 1, 4096);
        shape_.n_conv_rows = file.need_integer(prefix_ + "ssm.conv_kernel", 2, 16) - 1;
        const int64_t inner = file.need_integer(prefix_ + "ssm.inner_size", 1, 1 << 24);
        if (inner != shape_.n_head_v * shape_.state_size || shape_.n_head_v % shape_.n_head_k != 0) {
            file.refuse(format("%sssm: inner_size %lld, state_size %lld, time_step_rank %lld and group_count %lld do not fit together.", prefix_.c_str(),
                               static_cast<long long>(inner), static_cast<long long>(shape_.state_size), static_cast<long long>(shape_.n_head_v),
                               static_cast<long long>(shape_.n_head_k)));
        }
        shape_.n_channels = (2 * shape_.n_head_k + shape_.n_head_v) * shape_.state_size;
        check_device(device);
        // The device solves 32 columns per launch; the CPU takes them all at once.
        n_solve_blocks_ = !device.is_cpu && shape_.state_size % 32 == 0 ? shape_.state_size / 32 : 1;

        const std::vector<bool> recurrent = read_layer_kinds(file);
        for (int i = 0; i < n_layers_; ++i) {
            const std::string block = "blk." + std::to_string(i) + ".";
            Layer layer;
            layer.is_recurrent = recurrent[static_cast<size_t>(i)];
            layer.attn_norm = vector(block + "attn_norm.weight", n_embd_);
            layer.ffn_norm = vector(block + "post_attention_norm.weight", n_embd_);
            layer.ffn = add_swiglu(weights_, block, n_embd_, n_ff);
            if (layer.is_recurrent) {
                layer.delta = add_delta(block, inner);
            } else {
                layer.attention = add_attention(block);
            }
            layers_.push_back(layer);
        }
    }

  private:
    ggml_tensor * vector(const std::string & name, int64_t n) { return weights_.add(weights_.file().need_tensor(name, {n}), Use::kVector); }

    void read_positions(const ModelFile & file) {
        const int64_t n_rot = read_rotated();
        // Text has equal temporal, height and width positions, so interleaved multi-axis rotation is plain NEOX rotation
        // as long as those three axes cover every pair.
        const auto sections = file.integers(prefix_ + "rope.dimension_sections", 0, 4096, 4);
        if (!sections || sections->size() < 3) {
            file.refuse(prefix_ + "rope.dimension_sections: three or four numbers are needed.");
        }
        for (int64_t pair = 0; pair < n_rot / 2; ++pair) {
            if (pair >= 3 * (*sections)[static_cast<size_t>(pair % 3)]) {
                throw Error(DFLASH_UNSUPPORTED, format("%s: %srope.dimension_sections leave channel pair %lld without a position.", file.label().c_str(),
                                                       prefix_.c_str(), static_cast<long long>(pair)));
            }
        }
        if (!file.find(prefix_ + "rope.freq_base")) {
            file.refuse(prefix_ + "rope.freq_base is missing.");
        }
        rope_ = read_rope(file, prefix_, n_rot, GGML_ROPE_TYPE_NEOX);
    }

    // Kernels that claim support and abort: refuse before ggml sees the graph.
    void check_device(const Device & device) const {
        const int64_t s = shape_.state_size;
        if (device.is_cpu) {
            return;
        }
        if (s != 16 && s != 32 && s != 64 && s != 128) {
            throw Error(DFLASH_UNSUPPORTED, format("%s: DeltaNet heads of %lld do not run on %s (16, 32, 64 or 128 do).", weights_.file().label().c_str(),
                                                   static_cast<long long>(s), device.name.c_str()));
        }
        if (shape_.n_conv_rows + 1 != 3 && shape_.n_conv_rows + 1 != 4 && shape_.n_conv_rows + 1 != 5) {
            throw Error(DFLASH_UNSUPPORTED, format("%s: convolutions of width %lld do not run on %s.", weights_.file().label().c_str(),
                                                   static_cast<long long>(shape_.n_conv_rows + 1), device.name.c_str()));
        }
    }

    std::vector<bool> read_layer_kinds(const ModelFile & file) const {
        const auto n = static_cast<size_t>(n_layers_);
        if (const auto kinds = file.booleans(prefix_ + "attention.recurrent_layers", 1024)) {
            if (kinds->size() < n) {
                file.refuse(format("%sattention.recurrent_layers has %zu entries for %d layers.", prefix_.c_str(), kinds->size(), n_layers_));
            }
            return {kinds->begin(), kinds->begin() + n_layers_};
        }
        const int64_t interval = file.integer(prefix_ + "full_attention_interval", 1, 1024).value_or(4);
        std::vector<bool> kinds(n);
        for (size_t i = 0; i < n; ++i) {
            kinds[i] = (static_cast<int64_t>(i) + 1) % interval != 0;
        }
        return kinds;
    }

    Attention add_attention(const std::string & block) {
        Attention attention;
        attention.qkv =
            add_bundle(weights_, n_embd_,
                       {{block + "attn_q", 2 * head_dim_ * n_head_}, {block + "attn_k", head_dim_ * n_head_kv_}, {block + "attn_v", head_dim_ * n_head_kv_}});
        attention.output = add_linear(weights_, block + "attn_output", head_dim_ * n_head_, n_embd_);
        attention.q_norm = vector(block + "attn_q_norm.weight", head_dim_);
        attention.k_norm = vector(block + "attn_k_norm.weight", head_dim_);
        attention.kv_index = kv_shapes_.size();
        kv_shapes_.push_back({head_dim_, head_dim_, n_head_kv_});
        return attention;
    }

    DeltaNet add_delta(const std::string & block, int64_t inner) {
        const ModelFile & file = weights_.file();
        const int64_t width = shape_.n_conv_rows + 1;
        const int64_t channels = shape_.n_channels;
        DeltaNet delta;
        delta.in = add_bundle(
            weights_, n_embd_,
            {{block + "attn_qkv", channels}, {block + "attn_gate", inner}, {block + "ssm_beta", shape_.n_head_v}, {block + "ssm_alpha", shape_.n_head_v}});
        delta.output = add_linear(weights_, block + "ssm_out", inner, n_embd_);
        const TensorInfo & conv = file.need_tensor(block + "ssm_conv1d.weight", {width, channels});
        delta.conv = weights_.add(conv, Use::kVector);
        delta.conv_transposed = weights_.add_derived(block + "ssm_conv1d.transposed", {channels, 1, width}, [&conv, width, channels](float * out) {
            std::vector<float> in(static_cast<size_t>(width * channels));
            to_floats(conv, in.data());
            for (int64_t c = 0; c < channels; ++c) {
                for (int64_t tap = 0; tap < width; ++tap) {
                    out[tap * channels + c] = in[static_cast<size_t>(c * width + tap)];
                }
            }
        });
        delta.dt = vector(block + "ssm_dt.bias", shape_.n_head_v);
        delta.a = vector(block + "ssm_a", shape_.n_head_v);
        delta.norm = vector(block + "ssm_norm.weight", shape_.state_size);
        delta.state_index = recurrent_shapes_.size();
        recurrent_shapes_.push_back(shape_);
        return delta;
    }

    // The value part of activated channels [C, n], as [S, H_v, n, 1].
    ggml_tensor * values(ggml_context * ctx, ggml_tensor * qkv, int64_t n) const {
        const size_t f = sizeof(float);
        const auto s = static_cast<size_t>(shape_.state_size);
        return ggml_view_4d(ctx, qkv, shape_.state_size, shape_.n_head_v, n, 1, s * f, qkv->nb[1], qkv->nb[1] * static_cast<size_t>(n),
                            2 * s * static_cast<size_t>(shape_.n_head_k) * f);
    }

    ggml_tensor * state_4d(ggml_context * ctx, const RecurrentLayer & memory) const {
        return ggml_reshape_4d(ctx, memory.state, shape_.state_size, shape_.state_size, shape_.n_head_v, 1);
    }

    // The final state behind the outputs of a recurrence over n rows, written over the committed one. One contiguous
    // copy right after the recurrence: backends that can fuse the two do.
    ggml_tensor * copy_state(ggml_context * ctx, ggml_tensor * result, const RecurrentLayer & memory, int64_t n) const {
        const int64_t size = ggml_nelements(memory.state);
        ggml_tensor * last = ggml_view_2d(ctx, result, size, 1, static_cast<size_t>(size) * sizeof(float),
                                          static_cast<size_t>(shape_.state_size * shape_.n_head_v * n) * sizeof(float));
        return ggml_cpy(ctx, last, ggml_view_2d(ctx, memory.state, size, 1, static_cast<size_t>(size) * sizeof(float), 0));
    }

    ggml_tensor * run_attention(Pass & pass, const Timeline & timeline, const Attention & layer, ggml_tensor * h, bool is_output_needed) const {
        ggml_context * ctx = pass.ctx.get();
        const int64_t n = pass.shape.n_rows;
        const std::vector<ggml_tensor *> qkv = apply(ctx, layer.qkv, h);
        ggml_tensor * both = qkv[0]; // per head: query, gate
        const size_t head = static_cast<size_t>(head_dim_) * sizeof(float);
        ggml_tensor * q = ggml_view_3d(ctx, both, head_dim_, n_head_, n, 2 * head, both->nb[1], 0);
        ggml_tensor * gate = ggml_view_3d(ctx, both, head_dim_, n_head_, n, 2 * head, both->nb[1], head);
        q = rms_norm(ctx, q, layer.q_norm, epsilon_);
        ggml_tensor * k = rms_norm(ctx, heads_of(ctx, qkv[1], head_dim_), layer.k_norm, epsilon_);
        if (collect(pass, layer.kv_index, q, k)) {
            return nullptr;
        }
        q = apply_rope(ctx, rope_, q, pass.positions);
        if (is_output_needed) {
            ggml_build_forward_expand(pass.graph, q); // before the cache is written: see KvCache::write
        }
        k = apply_rope(ctx, rope_, k, pass.positions);
        timeline.kv.write(ctx, pass.graph, layer.kv_index, ggml_reshape_2d(ctx, k, head_dim_ * n_head_kv_, n), qkv[2], pass.slots);
        if (!is_output_needed) {
            return nullptr;
        }
        ggml_tensor * o =
            attend(ctx, timeline.kv.layer(layer.kv_index), q, pass.mask, pass.n_seen(), 1.0f / std::sqrt(static_cast<float>(head_dim_)), pass.first_slot);
        gate = ggml_sigmoid(ctx, ggml_cont_2d(ctx, gate, head_dim_ * n_head_, n)); // activations want contiguous rows
        return apply(ctx, layer.output, ggml_mul(ctx, o, gate));
    }

    ggml_tensor * run_delta(Pass & pass, const Timeline & timeline, const DeltaNet & layer, ggml_tensor * h, bool is_output_needed) const {
        ggml_context * ctx = pass.ctx.get();
        const RecurrentLayer & memory = timeline.recurrent.layer(layer.state_index);
        const int64_t n = pass.shape.n_rows;
        const int64_t s = shape_.state_size;
        const size_t f = sizeof(float);
        KeptRows kept;

        const std::vector<ggml_tensor *> in = apply(ctx, layer.in, h);
        ggml_tensor * z = in[1];
        kept.beta = ggml_sigmoid(ctx, dense(ctx, in[2]));
        kept.decay = ggml_mul(ctx, ggml_softplus(ctx, ggml_add(ctx, in[3], layer.dt)), layer.a);
        kept.conv_rows = ggml_concat(ctx, memory.conv, dense(ctx, in[0]), 1);
        ggml_tensor * convolved = pass.shape.kind == PassKind::kVerifyTree ? convolve_tree(pass, layer, kept.conv_rows) : convolve(ctx, layer, kept.conv_rows);
        kept.qkv = ggml_silu(ctx, convolved);
        // x / sqrt(sum x^2 + eps) for every query and key head at once.
        ggml_tensor * qk = ggml_view_3d(ctx, kept.qkv, s, 2 * shape_.n_head_k, n, static_cast<size_t>(s) * f, kept.qkv->nb[1], 0);
        kept.qk = ggml_scale(ctx, ggml_rms_norm(ctx, qk, epsilon_ / static_cast<float>(s)), 1.0f / std::sqrt(static_cast<float>(s)));

        ggml_tensor * o = nullptr; // [S, H_v, n]
        float norm_epsilon = epsilon_;
        if (pass.shape.kind == PassKind::kVerifyTree) {
            o = ggml_permute(ctx, tree_chunk(pass, memory, kept), 0, 2, 1, 3);
            norm_epsilon *= static_cast<float>(s); // the chunk leaves out the factor 1/sqrt(S), which the norm undoes
        } else {
            const auto row = static_cast<size_t>(2 * s * shape_.n_head_k) * f;
            const auto part = [&](size_t offset) {
                return ggml_view_4d(ctx, kept.qk, s, shape_.n_head_k, n, 1, static_cast<size_t>(s) * f, row, row * static_cast<size_t>(n), offset);
            };
            ggml_tensor * result =
                ggml_gated_delta_net(ctx, part(0), part(row / 2), values(ctx, kept.qkv, n), ggml_reshape_4d(ctx, kept.decay, 1, shape_.n_head_v, n, 1),
                                     ggml_reshape_4d(ctx, kept.beta, 1, shape_.n_head_v, n, 1), state_4d(ctx, memory), 1);
            if (pass.shape.kind == PassKind::kAppend) {
                ggml_build_forward_expand(pass.graph, copy_state(ctx, result, memory, n));
                ggml_tensor * last = ggml_view_2d(ctx, kept.conv_rows, shape_.n_channels, shape_.n_conv_rows, kept.conv_rows->nb[1],
                                                  kept.conv_rows->nb[1] * static_cast<size_t>(n));
                ggml_build_forward_expand(pass.graph, ggml_cpy(ctx, last, memory.conv));
            }
            o = ggml_view_3d(ctx, result, s, shape_.n_head_v, n, static_cast<size_t>(s) * f, static_cast<size_t>(s * shape_.n_head_v) * f, 0);
        }
        if (pass.is_verify()) {
            for (ggml_tensor * tensor : {kept.conv_rows, kept.qkv, kept.qk, kept.decay, kept.beta}) {
                ggml_build_forward_expand(pass.graph, tensor); // also when this layer's output is not needed
            }
            pass.pending->keep(kept, layer.state_index);
        }
        if (!is_output_needed) {
            return nullptr;
        }
        ggml_tensor * y = ggml_reshape_2d(ctx, rms_norm(ctx, o, layer.norm, norm_epsilon), s * shape_.n_head_v, n);
        return apply(ctx, layer.output, ggml_swiglu_split(ctx, z, y)); // silu(z) y
    }

    // Causal convolution over consecutive rows. The op wants time fastest.
    ggml_tensor * convolve(ggml_context * ctx, const DeltaNet & layer, ggml_tensor * rows) const {
        ggml_tensor * by_time = ggml_cont(ctx, ggml_transpose(ctx, rows));
        return ggml_ssm_conv(ctx, ggml_reshape_3d(ctx, by_time, rows->ne[1], shape_.n_channels, 1), layer.conv); // [C, n, 1]
    }

    // The same where each row's predecessors are its ancestors: gathered by index, tap by tap.
    ggml_tensor * convolve_tree(Pass & pass, const DeltaNet & layer, ggml_tensor * rows) const {
        ggml_context * ctx = pass.ctx.get();
        const int64_t n = pass.shape.n_rows;
        const int64_t width = shape_.n_conv_rows + 1;
        ggml_tensor * taps = ggml_reshape_3d(ctx, ggml_get_rows(ctx, rows, pass.conv_index), shape_.n_channels, n, width);
        taps = ggml_mul(ctx, taps, layer.conv_transposed);
        std::vector<ggml_tensor *> slabs;
        for (int64_t tap = 0; tap < width; ++tap) {
            slabs.push_back(ggml_view_2d(ctx, taps, shape_.n_channels, n, taps->nb[1], taps->nb[2] * static_cast<size_t>(tap)));
            ggml_build_forward_expand(pass.graph, slabs.back()); // views first: then CUDA fuses the sums
        }
        ggml_tensor * sum = slabs[0];
        for (size_t tap = 1; tap < slabs.size(); ++tap) {
            sum = ggml_add(ctx, sum, slabs[tap]);
        }
        return sum;
    }

    // One chunk of the delta rule under the ancestor mask; unscaled outputs [S, n, H_v]. With the decayed scores of each row's key
    // against its strict ancestors' (M, times beta) and of its query against theirs and its own (P): the rows' updates U solve
    // (I + M) U = beta (V - what the state answers to the keys), and the outputs are what it answers to the queries + P U.
    ggml_tensor * tree_chunk(Pass & pass, const RecurrentLayer & memory, const KeptRows & kept) const {
        ggml_context * ctx = pass.ctx.get();
        const int64_t n = pass.shape.n_rows;
        const int64_t s = shape_.state_size;
        const int64_t h_k = shape_.n_head_k;
        const int64_t h_v = shape_.n_head_v;
        const int64_t blocks = n_solve_blocks_;
        const size_t f = sizeof(float);
        const auto bytes = [f](int64_t elements) { return static_cast<size_t>(elements) * f; };

        // Decays as sums along paths, so that no exponent is ever positive.
        ggml_tensor * g = ggml_cont(ctx, ggml_transpose(ctx, kept.decay)); // [n, H_v]
        ggml_tensor * decays = ggml_exp(ctx, product(ctx, pass.paths, g)); // [n*n + n, H_v]
        ggml_tensor * between = ggml_view_4d(ctx, decays, n, n, 1, h_v, bytes(n), bytes(n * n), decays->nb[1], 0);
        ggml_tensor * from_root = ggml_view_4d(ctx, decays, 1, n, 1, h_v, f, bytes(n), decays->nb[1], bytes(n * n));
        // Queries and keys for every value head, which reads key head h mod H_k.
        ggml_tensor * qk_view = ggml_view_4d(ctx, kept.qk, s, n, 2, h_k, kept.qk->nb[2], bytes(s * h_k), bytes(s), 0);
        ggml_tensor * qk = ggml_repeat_4d(ctx, qk_view, s, n, 2, h_v);
        ggml_tensor * qk_rows = ggml_reshape_3d(ctx, qk, s, 2 * n, h_v);
        ggml_tensor * k = ggml_view_3d(ctx, qk, s, n, h_v, qk->nb[1], qk->nb[3], qk->nb[2]);
        // Scores between rows and their ancestors, decayed.
        ggml_tensor * scores = ggml_reshape_4d(ctx, product(ctx, k, qk_rows), n, n, 2, h_v);
        scores = ggml_mul(ctx, ggml_mul(ctx, scores, pass.masks), between);
        ggml_tensor * beta_rows = ggml_view_3d(ctx, kept.beta, 1, n, h_v, kept.beta->nb[1], f, 0);
        ggml_tensor * couplings = ggml_mul(ctx, ggml_view_3d(ctx, scores, n, n, h_v, scores->nb[1], scores->nb[3], scores->nb[2]), beta_rows);
        // I + M, once per block of columns to solve.
        couplings = ggml_reshape_4d(ctx, couplings, n, n, 1, h_v);
        ggml_tensor * system = blocks == 1 ? ggml_add(ctx, couplings, pass.identity) : ggml_add(ctx, pass.identity, couplings);
        // What the committed state answers to queries and keys, decayed.
        ggml_tensor * answers = ggml_reshape_4d(ctx, product(ctx, memory.state, qk_rows), s, n, 2, h_v);
        answers = ggml_mul(ctx, answers, from_root);
        // The updates U, by substitution.
        ggml_tensor * v = ggml_view_4d(ctx, kept.qkv, s / blocks, n, blocks, h_v, kept.qkv->nb[1], bytes(s / blocks), bytes(s), bytes(2 * s * h_k));
        ggml_tensor * known = ggml_view_4d(ctx, answers, s / blocks, n, blocks, h_v, answers->nb[1], bytes(s / blocks), answers->nb[3], answers->nb[2]);
        ggml_tensor * beta_columns = ggml_view_4d(ctx, kept.beta, 1, n, 1, h_v, kept.beta->nb[1], kept.beta->nb[1] * static_cast<size_t>(n), f, 0);
        ggml_tensor * updates = ggml_solve_tri(ctx, system, ggml_mul(ctx, ggml_sub(ctx, v, known), beta_columns), true, true, false);
        // Outputs = decayed state answers + P U.
        ggml_tensor * by_column = ggml_reshape_3d(ctx, ggml_cont(ctx, ggml_permute(ctx, updates, 1, 0, 2, 3)), n, s, h_v);
        ggml_tensor * weights = ggml_view_3d(ctx, scores, n, n, h_v, scores->nb[1], scores->nb[3], 0);
        ggml_tensor * state_part = ggml_view_3d(ctx, answers, s, n, h_v, answers->nb[1], answers->nb[3], 0);
        return ggml_add(ctx, product(ctx, by_column, weights), state_part);
    }

    // A product of activations, accumulated in F32 everywhere.
    static ggml_tensor * product(ggml_context * ctx, ggml_tensor * a, ggml_tensor * b) {
        ggml_tensor * out = ggml_mul_mat(ctx, a, b);
        ggml_prec_set_acc(out, GGML_PREC_F32);
        return out;
    }

    ggml_tensor * run_layers(Pass & pass, const Timeline & timeline, ggml_tensor * x) const override {
        ggml_context * ctx = pass.ctx.get();
        for (int i = 0; i < n_layers_; ++i) {
            const Layer & layer = layers_[static_cast<size_t>(i)];
            const bool is_needed = i < n_layers_ - 1 || is_output_read(pass, i);
            ggml_tensor * h = rms_norm(ctx, x, layer.attn_norm, epsilon_);
            ggml_tensor * mixed =
                layer.is_recurrent ? run_delta(pass, timeline, layer.delta, h, is_needed) : run_attention(pass, timeline, layer.attention, h, is_needed);
            if (!mixed) {
                return nullptr;
            }
            x = ggml_add(ctx, x, mixed);
            x = ggml_add(ctx, x, apply(ctx, layer.ffn, rms_norm(ctx, x, layer.ffn_norm, epsilon_)));
            pass.after_layer(i, x);
        }
        return x;
    }

    Rope rope_;
    RecurrentShape shape_;
    std::vector<Layer> layers_;
};

} // namespace

std::unique_ptr<Target> open_qwen35(std::shared_ptr<const ModelFile> file, const Device & device) {
    return std::make_unique<Qwen35>(std::move(file), device);
}

} // namespace dflash
