// One pass of a model over some rows: a graph, its inputs and its results. A pass is built once per shape and replayed.
#pragma once

#include <cstdint>
#include <tuple>
#include <vector>

#include "commit.h"
#include "kv_cache.h"
#include "memory.h"

namespace dflash {

enum class PassKind {
    kAppend,      // rows join the timeline in order: prefill, plain decoding. Recurrent state moves on.
    kVerifyTree,  // rows are the root and its tree. Nothing but pending KV rows changes; what a commit needs is kept.
    kVerifyChain, // the same for a tree without branches: the recurrence itself, cheaper on GPUs
};

struct PassShape {
    PassKind kind = PassKind::kAppend;
    int n_rows = 0;
    int n_kv = 0;               // cache slots that attention looks at, a multiple of 256
    bool has_logits = false;    // head, argmax and logits of every row
    bool has_features = false;  // the draft's context rows are written too
    bool keeps_features = false; // what they are computed from is kept, for later
    bool operator<(const PassShape & other) const {
        return std::tie(kind, n_rows, n_kv, has_logits, has_features, keeps_features) <
               std::tie(other.kind, other.n_rows, other.n_kv, other.has_logits, other.has_features, other.keeps_features);
    }
};

// What a scorer collects (pflash.h): queries and keys of some attention layers, before rotation.
struct Tap {
    int first = 0;                      // counted among the attention layers
    std::vector<ggml_tensor *> keys;    // per layer F16 [head_dim * n_head_kv, n_slots]
    std::vector<ggml_tensor *> queries; // per layer F32 [head_dim * n_head, at least n]
};

struct Pass {
    PassShape shape;
    ContextPtr ctx;
    ggml_cgraph * graph = nullptr;
    uint64_t last_use = 0; // for the cache of passes
    int n_runs = 0;

    // inputs
    std::vector<ggml_tensor *> inputs; // those below that are written anew for every run
    uint64_t input_bytes = 0;
    ggml_tensor * tokens = nullptr;    // I32 [n]
    ggml_tensor * positions = nullptr; // I32 [n]
    ggml_tensor * slots = nullptr;     // I64 [n]: where the rows' keys and values go
    ggml_tensor * kept_slots = nullptr; // I64 [n]: where features are kept; nullptr unless they are
    ggml_tensor * mask_end = nullptr;  // F16 [some, n]: the last columns of the mask; every row sees all before them
    ggml_tensor * mask = nullptr;      // F16 [n_kv - first_slot, n]: 0 where visible, -inf elsewhere
    int first_slot = 0;                // that attention looks at: beyond 0 only with a window
    int n_streams = 1;                 // equal runs of rows that don't see each other: run i has slots from i * shape.n_kv on
    // inputs of kVerifyTree on recurrent targets, see tree_chunk() in qwen35.cpp; nullptr when no layer uses them
    ggml_tensor * conv_index = nullptr; // I32 [4 n], tap-major: row of (state rows, tree rows) that feeds the tap
    ggml_tensor * paths = nullptr;      // F32 [n, n*n + n]: rows (i,j): ones on the path from below j down to i; then ancestors-or-self
    ggml_tensor * masks = nullptr;      // F32 [n, n, 2]: ancestor-or-self, then strict ancestor
    ggml_tensor * identity = nullptr;   // F32 [n, n, blocks, H_v], or [n, n, 1, 1] for one block; constant

    // of a scorer; nullptr elsewhere
    const Tap * tap = nullptr;
    ggml_tensor * key_slots = nullptr; // I64 [n]: where the rows' unrotated keys go

    // results
    ggml_tensor * argmax = nullptr;    // I32 [n]
    ggml_tensor * logits = nullptr;    // F32 [n_vocab, n]
    const PendingRows * pending = nullptr; // of a verify: where DeltaNet layers leave what the commit needs

    // while building
    std::vector<int> feature_layers;      // 0-based layers whose output the draft reads, in the draft's order
    std::vector<ggml_tensor *> features;  // F32 [n_embd, n] each

    // Called by a target after each layer: remembers the residual stream where the draft wants it.
    void after_layer(int layer, ggml_tensor * residual) {
        for (size_t i = 0; i < feature_layers.size(); ++i) {
            if (feature_layers[i] == layer) {
                features[i] = residual;
            }
        }
    }
    bool is_verify() const { return shape.kind != PassKind::kAppend; }
    int n_seen() const { return shape.n_kv - first_slot; } // slots that attention looks at
};

// The mutable memory of a session that target graphs read and write.
struct Timeline {
    KvCache kv;
    RecurrentState recurrent;
};

} // namespace dflash
