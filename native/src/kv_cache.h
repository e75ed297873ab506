// Rows of one model's KV cache, and the recurrent state of DeltaNet layers. Committed rows are [0, n); rows of a verify
// wait at [n, n + rows) until the commit keeps the accepted ones.
#pragma once

#include <cstdint>
#include <vector>

#include "device.h"
#include "dflash.h"

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
    // The same memory as words of 32 bits: rows of every type can be moved bit by bit, whatever their type.
    ggml_tensor * k_words = nullptr;
    ggml_tensor * v_words = nullptr;
};

ggml_type kv_ggml_type(int32_t kv_type, const Device & device); // dflash_kv_type; throws BAD_ARGUMENT

class KvCache {
  public:
    KvCache() = default;
    // `n_slots` is rounded up to a multiple of 256: GPU kernels want it.
    KvCache(const Compute & compute, const std::vector<KvShape> & shapes, ggml_type type_k, ggml_type type_v, int64_t n_slots, const char * what);

    const KvLayer & layer(size_t index) const { return layers_[index]; }
    size_t n_layers() const { return layers_.size(); }
    int64_t n_slots() const { return n_slots_; }
    uint64_t bytes() const { return buffer_ ? ggml_backend_buffer_get_size(buffer_.get()) : 0; }
    // Zero everything, so that nothing of an earlier timeline can ever be read.
    void clear();

    // Write `rows` of new keys and values ([row size, n]) to `slots` (I64 [n]).
    void write(ggml_context * ctx, ggml_cgraph * graph, size_t layer, ggml_tensor * k, ggml_tensor * v, ggml_tensor * slots) const;
    // Move rows from `from` to `to` (I64 [n] each), all layers: everything is read before anything is written.
    void move_rows(ggml_context * ctx, ggml_cgraph * graph, ggml_tensor * from_rows, ggml_tensor * to_slots) const;

  private:
    ggml_context_ptr ctx_;
    ggml_context_ptr words_ctx_;
    ggml_backend_buffer_ptr buffer_;
    std::vector<KvLayer> layers_;
    int64_t n_slots_ = 0;
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
    RecurrentState(const Compute & compute, const std::vector<RecurrentShape> & shapes);

    const RecurrentLayer & layer(size_t index) const { return layers_[index]; }
    size_t n_layers() const { return layers_.size(); }
    bool is_empty() const { return layers_.empty(); }
    uint64_t bytes() const { return buffer_ ? ggml_backend_buffer_get_size(buffer_.get()) : 0; }
    void clear();
    // The whole state as host bytes, for checkpoints.
    void save(std::vector<uint8_t> & out) const;
    void restore(const std::vector<uint8_t> & saved);

  private:
    ggml_context_ptr ctx_;
    ggml_backend_buffer_ptr buffer_;
    std::vector<RecurrentLayer> layers_;
};

} // namespace dflash
