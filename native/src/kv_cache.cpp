// KV rows and recurrent state; see kv_cache.h.
#include "kv_cache.h"

namespace dflash {

namespace {

ggml_context_ptr new_context(size_t n_tensors) {
    ggml_init_params params = {};
    params.mem_size = ggml_tensor_overhead() * n_tensors;
    params.no_alloc = true;
    ggml_context_ptr ctx(ggml_init(params));
    if (!ctx) {
        throw Error(DFLASH_OUT_OF_MEMORY, "Not enough memory to describe the cache.");
    }
    return ctx;
}

} // namespace

ggml_type kv_ggml_type(int32_t kv_type, const Device & device) {
    switch (kv_type) {
        // F32 on the CPU: there F16 values are also summed in F16, which shows in the logits; memory is no argument
        // beside the weights. GPUs sum in F32 and live on bandwidth.
        case DFLASH_KV_AUTO: return device.is_cpu ? GGML_TYPE_F32 : GGML_TYPE_F16;
        case DFLASH_KV_F32: return GGML_TYPE_F32;
        case DFLASH_KV_F16: return GGML_TYPE_F16;
        case DFLASH_KV_BF16: return GGML_TYPE_BF16;
        case DFLASH_KV_Q8_0: return GGML_TYPE_Q8_0;
        case DFLASH_KV_Q5_1: return GGML_TYPE_Q5_1;
        case DFLASH_KV_Q5_0: return GGML_TYPE_Q5_0;
        case DFLASH_KV_Q4_1: return GGML_TYPE_Q4_1;
        case DFLASH_KV_Q4_0: return GGML_TYPE_Q4_0;
        default: throw Error(DFLASH_BAD_ARGUMENT, format("There is no KV cache type number %d.", kv_type));
    }
}

KvCache::KvCache(const Compute & compute, const std::vector<KvShape> & shapes, ggml_type type_k, ggml_type type_v, int64_t n_slots, const char * what)
    : n_slots_((n_slots + 255) / 256 * 256) {
    if (shapes.empty()) {
        return;
    }
    ctx_ = new_context(2 * shapes.size());
    words_ctx_ = new_context(2 * shapes.size());
    const auto make = [&](ggml_type type, int64_t row) {
        // Each head is read on its own, so a head has to be whole blocks; rows are moved as 32-bit words.
        return ggml_new_tensor_2d(ctx_.get(), type, row, n_slots_);
    };
    for (const KvShape & shape : shapes) {
        const auto check = [&](ggml_type type, int64_t head_dim, const char * side) {
            if (head_dim % ggml_blck_size(type) != 0 || ggml_row_size(type, head_dim * shape.n_head_kv) % 4 != 0) {
                throw Error(DFLASH_UNSUPPORTED, format("The KV cache type %s needs head sizes in multiples of %d; the %s of this model have %d. Use f16.",
                                                       ggml_type_name(type), static_cast<int>(ggml_blck_size(type)), side, static_cast<int>(head_dim)));
            }
        };
        check(type_k, shape.head_dim_k, "keys");
        check(type_v, shape.head_dim_v, "values");
        KvLayer layer;
        layer.shape = shape;
        layer.k = make(type_k, shape.head_dim_k * shape.n_head_kv);
        layer.v = make(type_v, shape.head_dim_v * shape.n_head_kv);
        layers_.push_back(layer);
    }
    buffer_ = allocate_cleared(ctx_.get(), compute.buffer_type(), what);
    for (KvLayer & layer : layers_) {
        const auto alias = [&](ggml_tensor * tensor) {
            ggml_tensor * words = ggml_new_tensor_2d(words_ctx_.get(), GGML_TYPE_F32, static_cast<int64_t>(tensor->nb[1] / 4), n_slots_);
            if (ggml_backend_tensor_alloc(tensor->buffer, words, tensor->data) != GGML_STATUS_SUCCESS) {
                throw Error(DFLASH_INTERNAL, "The KV cache could not be seen as words.");
            }
            return words;
        };
        layer.k_words = alias(layer.k);
        layer.v_words = alias(layer.v);
    }
}

void KvCache::clear() {
    if (buffer_) {
        ggml_backend_buffer_clear(buffer_.get(), 0);
    }
}

void KvCache::write(ggml_context * ctx, ggml_cgraph * graph, size_t layer, ggml_tensor * k, ggml_tensor * v, ggml_tensor * slots) const {
    ggml_build_forward_expand(graph, ggml_set_rows(ctx, layers_[layer].k, k, slots));
    ggml_build_forward_expand(graph, ggml_set_rows(ctx, layers_[layer].v, v, slots));
}

void KvCache::move_rows(ggml_context * ctx, ggml_cgraph * graph, ggml_tensor * from_rows, ggml_tensor * to_slots) const {
    for (const KvLayer & layer : layers_) {
        for (ggml_tensor * words : {layer.k_words, layer.v_words}) {
            ggml_tensor * rows = ggml_get_rows(ctx, words, from_rows);
            ggml_build_forward_expand(graph, ggml_set_rows(ctx, words, rows, to_slots));
        }
    }
}

RecurrentState::RecurrentState(const Compute & compute, const std::vector<RecurrentShape> & shapes) {
    if (shapes.empty()) {
        return;
    }
    ctx_ = new_context(2 * shapes.size());
    for (const RecurrentShape & shape : shapes) {
        RecurrentLayer layer;
        layer.shape = shape;
        layer.state = ggml_new_tensor_3d(ctx_.get(), GGML_TYPE_F32, shape.state_size, shape.state_size, shape.n_head_v);
        layer.conv = ggml_new_tensor_2d(ctx_.get(), GGML_TYPE_F32, shape.n_channels, shape.n_conv_rows);
        layers_.push_back(layer);
    }
    buffer_ = allocate_cleared(ctx_.get(), compute.buffer_type(), "recurrent state");
}

void RecurrentState::clear() {
    if (buffer_) {
        ggml_backend_buffer_clear(buffer_.get(), 0);
    }
}

void RecurrentState::save(std::vector<uint8_t> & out) const {
    size_t n = 0;
    for (const RecurrentLayer & layer : layers_) {
        n += ggml_nbytes(layer.state) + ggml_nbytes(layer.conv);
    }
    out.resize(n);
    size_t at = 0;
    for (const RecurrentLayer & layer : layers_) {
        for (ggml_tensor * tensor : {layer.state, layer.conv}) {
            ggml_backend_tensor_get(tensor, out.data() + at, 0, ggml_nbytes(tensor));
            at += ggml_nbytes(tensor);
        }
    }
}

void RecurrentState::restore(const std::vector<uint8_t> & saved) {
    size_t at = 0;
    for (const RecurrentLayer & layer : layers_) {
        for (ggml_tensor * tensor : {layer.state, layer.conv}) {
            ggml_backend_tensor_set(tensor, saved.data() + at, 0, ggml_nbytes(tensor));
            at += ggml_nbytes(tensor);
        }
    }
}

} // namespace dflash
