// Rows of one model's KV cache, and the recurrent state of DeltaNet layers. Committed rows are [0, n); rows of a verify
// wait at [n, n + rows) until the commit keeps the accepted ones.
#pragma once

#include <cstdint>
#include <vector>

#include "dflash.h"
#include "memory.h"

namespace dflash {

struct KvShape {
    int64_t head_dim_k = 0;
    int64_t head_dim_v = 0;
    int64_t n_head_kv = 0;
};

struct KvLayer {
    KvShape shape;
    ggml_tensor * k = nullptr; // [head_dim_k * n_head_kv, n_slots], already rotated
    ggml_tensor * v = nullptr; // [head_dim_v * n_head_kv, n_slots]
};

ggml_type kv_ggml_type(int32_t kv_type, const Device & device); // dflash_kv_type; throws BAD_ARGUMENT
// Throws UNSUPPORTED, with the pairs that do work, when the device cannot attend over such caches.
void require_kv_types(const Device & device, const std::vector<KvShape> & shapes, ggml_type type_k, ggml_type type_v);

class KvCache {
  public:
    KvCache() = default;
    // `n_slots` is rounded up to a multiple of 256: GPU kernels want it.
    // A plan has the sizes and no memory.
    KvCache(const Compute & compute, const std::vector<KvShape> & shapes, ggml_type type_k, ggml_type type_v, int64_t n_slots, const Purpose & purpose,
            bool is_plan = false);

    const KvLayer & layer(size_t index) const { return layers_[index]; }
    size_t n_layers() const { return layers_.size(); }
    int64_t n_slots() const { return n_slots_; }
    uint64_t bytes() const { return bytes_; }
    // Zero everything, so that nothing of an earlier timeline can ever be read.
    void clear();

    // Rows [first, first + n) of all layers as host bytes, n rows of each tensor one tensor after the other: n * row_bytes().
    // The device must be at rest.
    uint64_t row_bytes() const;
    void save_rows(int first, int n, uint8_t * out) const;
    // Put rows [first, first + n) back; `saved` holds n_saved rows, of which the first is row first_saved.
    void restore_rows(int first, int n, const uint8_t * saved, int first_saved, int n_saved) const;

    // Write `rows` of new keys and values ([row size, n]) to `slots` (I64 [n]). The attention that reads them must be the
    // next operation of the graph, its queries computed before: with three small operations in a row between, NVIDIA's
    // dependent launches (ggml 0.25.3, H200, captured graphs) let it read what the slots held before.
    void write(ggml_context * ctx, ggml_cgraph * graph, size_t layer, ggml_tensor * k, ggml_tensor * v, ggml_tensor * slots) const;
    // Most tensors that one operation of move_rows moves rows of.
    int64_t n_moved_together() const;
    // Move rows of all layers: within an operation everything is read before anything is written. from_rows I32
    // [n, n_moved_together()], the same rows in every column; to_slots I64 [n].
    void move_rows(ggml_context * ctx, ggml_cgraph * graph, ggml_tensor * from_rows, ggml_tensor * to_slots) const;

  private:
    ContextPtr ctx_;
    ContextPtr words_ctx_;
    ggml_backend_buffer_ptr buffer_;
    std::vector<KvLayer> layers_;
    // The same memory as words of 32 bits, [words, n_slots, tensors], keys and values alike: rows of every type can be
    // moved bit by bit. Tensors that lie one behind the other move together.
    std::vector<ggml_tensor *> words_;
    int64_t n_slots_ = 0;
    uint64_t bytes_ = 0;
};

struct RecurrentShape {
    int64_t state_size = 0;     // S: key and value head width
    int64_t n_head_k = 0;
    int64_t n_head_v = 0;
    int64_t n_channels = 0;     // of the convolution: (2 n_head_k + n_head_v) S
    int64_t n_conv_rows = 0;    // kernel width - 1
};

struct RecurrentLayer {
    RecurrentShape shape;
    ggml_tensor * state = nullptr; // F32 [S, S, n_head_v], key index fastest
    ggml_tensor * conv = nullptr;  // F32 [n_channels, n_conv_rows], oldest row first
};

class RecurrentState {
  public:
    RecurrentState() = default;
    RecurrentState(const Compute & compute, const std::vector<RecurrentShape> & shapes, const Purpose & purpose, bool is_plan = false);

    const RecurrentLayer & layer(size_t index) const { return layers_[index]; }
    size_t n_layers() const { return layers_.size(); }
    bool is_empty() const { return layers_.empty(); }
    // All layers one behind the other: F32 [S, S, n_head_v, n_layers] and [n_channels, n_conv_rows, n_layers].
    ggml_tensor * states() const { return states_; }
    ggml_tensor * convs() const { return convs_; }
    uint64_t bytes() const { return bytes_; }
    void clear();
    // The whole state as host bytes, for checkpoints. The device must be at rest.
    uint64_t saved_bytes() const;
    void save(uint8_t * out) const;
    void restore(const uint8_t * saved);

  private:
    ContextPtr ctx_;
    ContextPtr layers_ctx_;
    ggml_backend_buffer_ptr buffer_;
    ggml_tensor * states_ = nullptr;
    ggml_tensor * convs_ = nullptr;
    std::vector<RecurrentLayer> layers_;
    uint64_t bytes_ = 0;
};

} // namespace dflash
