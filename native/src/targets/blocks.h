// Pieces that several architectures share: products, norms, rotary positions, attention over cached rows, SwiGLU.
#pragma once

#include <string>
#include <vector>

#include "pass.h"
#include "weights.h"

namespace dflash {

// y = scale * (W x) + b
struct Linear {
    ggml_tensor * weight = nullptr; // [n_in, n_out]
    ggml_tensor * bias = nullptr;   // [n_out] or nullptr
    ggml_tensor * scale = nullptr;  // [1] or nullptr
    const Products * products = nullptr; // what is known about computing W x; nullptr: nothing
};

// The product named `name` (".weight", and ".bias", ".scale" when the file has them), required to be [n_in, n_out].
Linear add_linear(Weights & weights, const std::string & name, int64_t n_in, int64_t n_out, Use use = Use::kMatmul);
ggml_tensor * apply(ggml_context * ctx, const Linear & linear, ggml_tensor * x);

// Products of the same rows. Where a device gains by it and their types allow, several are computed as one.
struct Bundle {
    struct Group {
        ggml_tensor * stack = nullptr; // the weights of all members as one; nullptr for a single member
        std::vector<size_t> members;   // of parts
    };
    std::vector<Linear> parts;
    std::vector<Group> groups;
    const Products * products = nullptr; // of all parts
};
struct BundlePart {
    std::string name;
    int64_t n_out = 0;
};
Bundle add_bundle(Weights & weights, int64_t n_in, const std::vector<BundlePart> & parts);
// One result per part, [n_out, n]; with several rows its rows may lie apart.
std::vector<ggml_tensor *> apply(ggml_context * ctx, const Bundle & bundle, ggml_tensor * x);
// The same for parts `first` and first + 1 alone.
std::vector<ggml_tensor *> apply_pair(ggml_context * ctx, const Bundle & bundle, ggml_tensor * x, size_t first);
// Rows [head_dim * n_head, n] seen head by head, [head_dim, n_head, n].
ggml_tensor * heads_of(ggml_context * ctx, ggml_tensor * rows, int64_t head_dim);
// The same values without gaps, for operations that insist.
ggml_tensor * dense(ggml_context * ctx, ggml_tensor * x);

// rms(x) * weight, over ne0.
ggml_tensor * rms_norm(ggml_context * ctx, ggml_tensor * x, ggml_tensor * weight, float epsilon);

// How positions turn queries and keys (ggml_rope_ext's parameters).
struct Rope {
    int n_dims = 0;
    int mode = 0; // GGML_ROPE_TYPE_*
    int n_original_context = 0;
    float base = 10000;
    float scale = 1;
    float ext_factor = 0;
    float attn_factor = 1;
    float beta_fast = 32;
    float beta_slow = 1;
    ggml_tensor * factors = nullptr; // [n_dims / 2] or nullptr
};

// Read rope.freq_base and rope.scaling.* under `prefix` ("llama."). Refuses what is not a sane number.
Rope read_rope(const ModelFile & file, const std::string & prefix, int64_t n_dims, int mode);
// x [head_dim, n_head, n]
ggml_tensor * apply_rope(ggml_context * ctx, const Rope & rope, ggml_tensor * x, ggml_tensor * positions);

// softmax(q k / scale + mask) v over n_kv slots of the cache from `first` on. q [head_dim, n_head, n]; result
// [head_dim * n_head, n]. Each of n_streams equal runs of rows looks at n_kv slots of its own, one run's behind the other's.
ggml_tensor * attend(ggml_context * ctx, const KvLayer & cache, ggml_tensor * q, ggml_tensor * mask, int64_t n_kv, float scale, int64_t first = 0,
                     int64_t n_streams = 1);

// Hand a layer's queries and keys [head_dim, n_head, n], before rotation, to the pass's tap. True when it has all it
// wants: what follows need not be computed.
bool collect(Pass & pass, size_t attention_layer, ggml_tensor * q, ggml_tensor * k);

struct SwiGlu {
    Linear gate, up, down;
    ggml_tensor * gate_up = nullptr; // both as one; nullptr where they are computed one by one
};
SwiGlu add_swiglu(Weights & weights, const std::string & prefix, int64_t n_embd, int64_t n_ff);
// down(activation(gate x) * up x), with GELU instead of SiLU for is_gelu.
ggml_tensor * apply(ggml_context * ctx, const SwiGlu & ffn, ggml_tensor * x, bool is_gelu = false);

} // namespace dflash
