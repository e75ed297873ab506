// KV rows and recurrent state; see kv_cache.h.
#include "kv_cache.h"

#include <algorithm>

namespace dflash {

namespace {

constexpr size_t kMostMovedBytes = size_t{1} << 30; // of caches that move together: devices bound what an operation may see

// Let `tensor` be what lies in the memory of `owner`, `offset` bytes in. No view of it: views are nodes of every graph
// that uses them, and ggml's CUDA backend tells captured graphs apart by their first node.
void place(ggml_tensor * tensor, const ggml_tensor * owner, size_t offset, bool is_plan) {
    void * data = static_cast<uint8_t *>(owner->data) + (is_plan ? 0 : offset);
    if (is_plan) {
        tensor->buffer = owner->buffer;
        tensor->data = data;
    } else if (ggml_backend_tensor_alloc(owner->buffer, tensor, data) != GGML_STATUS_SUCCESS) {
        throw Error(DFLASH_INTERNAL, "A part of the cache has no place in it.");
    }
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

namespace {

constexpr ggml_type kKvTypes[] = {GGML_TYPE_F32, GGML_TYPE_F16, GGML_TYPE_BF16, GGML_TYPE_Q8_0, GGML_TYPE_Q5_1, GGML_TYPE_Q5_0, GGML_TYPE_Q4_1, GGML_TYPE_Q4_0};

// Whether heads of such a shape can be written to and attended over in these types.
bool supports_kv(const Device & device, const KvShape & shape, ggml_type type_k, ggml_type type_v) {
    const auto fits = [&](ggml_type type, int64_t head_dim) {
        // Each head is read on its own, so it has to be whole blocks; rows are moved as 32-bit words.
        return head_dim % ggml_blck_size(type) == 0 && ggml_row_size(type, head_dim * shape.n_head_kv) % 4 == 0;
    };
    if (!fits(type_k, shape.head_dim_k) || !fits(type_v, shape.head_dim_v)) {
        return false;
    }
    const ContextPtr ctx = tensor_context(16);
    constexpr int64_t kRows = 256;
    const auto rows = [&](ggml_type type, int64_t head_dim) { return ggml_new_tensor_2d(ctx.get(), type, head_dim * shape.n_head_kv, kRows); };
    const auto heads = [&](ggml_tensor * cache, int64_t head_dim) {
        return ggml_view_3d(ctx.get(), cache, head_dim, kRows, shape.n_head_kv, cache->nb[1], ggml_row_size(cache->type, head_dim), 0);
    };
    ggml_tensor * k = rows(type_k, shape.head_dim_k);
    ggml_tensor * v = rows(type_v, shape.head_dim_v);
    ggml_tensor * q = ggml_new_tensor_3d(ctx.get(), GGML_TYPE_F32, shape.head_dim_k, 1, shape.n_head_kv);
    ggml_tensor * mask = ggml_new_tensor_2d(ctx.get(), GGML_TYPE_F16, kRows, 1);
    ggml_tensor * slots = ggml_new_tensor_1d(ctx.get(), GGML_TYPE_I64, 1);
    const auto can = [&](const ggml_tensor * op) { return ggml_backend_dev_supports_op(device.handle, op); };
    ggml_tensor * attention = ggml_flash_attn_ext(ctx.get(), q, heads(k, shape.head_dim_k), heads(v, shape.head_dim_v), mask, 1.0f, 0.0f, 0.0f);
    return can(attention) && can(ggml_set_rows(ctx.get(), k, ggml_new_tensor_2d(ctx.get(), GGML_TYPE_F32, k->ne[0], 1), slots)) &&
           can(ggml_set_rows(ctx.get(), v, ggml_new_tensor_2d(ctx.get(), GGML_TYPE_F32, v->ne[0], 1), slots));
}

} // namespace

void require_kv_types(const Device & device, const std::vector<KvShape> & shapes, ggml_type type_k, ggml_type type_v) {
    for (const KvShape & shape : shapes) {
        if (supports_kv(device, shape, type_k, type_v)) {
            continue;
        }
        std::string working;
        for (const ggml_type k : kKvTypes) {
            for (const ggml_type v : kKvTypes) {
                if (supports_kv(device, shape, k, v)) {
                    working += std::string(working.empty() ? "" : ", ") + ggml_type_name(k) + "/" + ggml_type_name(v);
                }
            }
        }
        throw Error(DFLASH_UNSUPPORTED, format("The device %s cannot keep this model's keys as %s and values as %s (heads of %d and %d). Pairs that work: %s.",
                                               device.name.c_str(), ggml_type_name(type_k), ggml_type_name(type_v), static_cast<int>(shape.head_dim_k),
                                               static_cast<int>(shape.head_dim_v), working.empty() ? "none" : working.c_str()));
    }
}

KvCache::KvCache(const Compute & compute, const std::vector<KvShape> & shapes, ggml_type type_k, ggml_type type_v, int64_t n_slots, const Purpose & purpose,
                 bool is_plan)
    : n_slots_((n_slots + 255) / 256 * 256) {
    if (shapes.empty()) {
        return;
    }
    ctx_ = tensor_context(2 * shapes.size());
    words_ctx_ = tensor_context(2 * shapes.size());
    require_kv_types(compute.device(), shapes, type_k, type_v);
    layers_.resize(shapes.size());
    std::vector<ggml_tensor *> tensors; // keys first: those of all layers, then the values, each one behind the other
    for (const bool is_key : {true, false}) {
        for (size_t i = 0; i < shapes.size(); ++i) {
            const KvShape & shape = shapes[i];
            layers_[i].shape = shape;
            ggml_tensor *& tensor = is_key ? layers_[i].k : layers_[i].v;
            tensor = ggml_new_tensor_2d(ctx_.get(), is_key ? type_k : type_v, (is_key ? shape.head_dim_k : shape.head_dim_v) * shape.n_head_kv, n_slots_);
            tensors.push_back(tensor);
        }
    }
    bytes_ = context_bytes(ctx_.get(), compute.buffer_type());
    buffer_ = allocate(ctx_.get(), compute, purpose, is_plan);
    for (size_t i = 0; i < tensors.size();) {
        const ggml_tensor * first = tensors[i];
        const size_t bytes = ggml_nbytes(first);
        size_t n = 1; // tensors of equal rows that lie right behind the first
        while (i + n < tensors.size() && tensors[i + n]->nb[1] == first->nb[1] && (n + 1) * bytes <= kMostMovedBytes &&
               (is_plan || static_cast<uint8_t *>(tensors[i + n]->data) == static_cast<uint8_t *>(first->data) + n * bytes)) {
            ++n;
        }
        ggml_tensor * words = ggml_new_tensor_3d(words_ctx_.get(), GGML_TYPE_F32, static_cast<int64_t>(first->nb[1] / 4), n_slots_, static_cast<int64_t>(n));
        place(words, first, 0, is_plan);
        words_.push_back(words);
        i += n;
    }
}

void KvCache::clear() {
    if (buffer_) {
        ggml_backend_buffer_clear(buffer_.get(), 0);
    }
}

uint64_t KvCache::row_bytes() const {
    uint64_t bytes = 0;
    for (const KvLayer & layer : layers_) {
        bytes += layer.k->nb[1] + layer.v->nb[1];
    }
    return bytes;
}

void KvCache::save_rows(int first, int n, uint8_t * out) const {
    for (const KvLayer & layer : layers_) {
        for (const ggml_tensor * tensor : {layer.k, layer.v}) {
            const size_t bytes = static_cast<size_t>(n) * tensor->nb[1];
            ggml_backend_tensor_get(tensor, out, static_cast<size_t>(first) * tensor->nb[1], bytes);
            out += bytes;
        }
    }
}

void KvCache::restore_rows(int first, int n, const uint8_t * saved, int first_saved, int n_saved) const {
    for (const KvLayer & layer : layers_) {
        for (ggml_tensor * tensor : {layer.k, layer.v}) {
            const size_t row = tensor->nb[1];
            const uint8_t * from = saved + static_cast<size_t>(first - first_saved) * row;
            ggml_backend_tensor_set(tensor, from, static_cast<size_t>(first) * row, static_cast<size_t>(n) * row);
            saved += static_cast<size_t>(n_saved) * row;
        }
    }
}

void KvCache::write(ggml_context * ctx, ggml_cgraph * graph, size_t layer, ggml_tensor * k, ggml_tensor * v, ggml_tensor * slots) const {
    ggml_build_forward_expand(graph, ggml_set_rows(ctx, layers_[layer].k, k, slots));
    ggml_build_forward_expand(graph, ggml_set_rows(ctx, layers_[layer].v, v, slots));
}

int64_t KvCache::n_moved_together() const {
    int64_t most = 1;
    for (const ggml_tensor * words : words_) {
        most = std::max(most, words->ne[2]);
    }
    return most;
}

void KvCache::move_rows(ggml_context * ctx, ggml_cgraph * graph, ggml_tensor * from_rows, ggml_tensor * to_slots) const {
    for (ggml_tensor * words : words_) {
        ggml_tensor * from = ggml_view_2d(ctx, from_rows, from_rows->ne[0], words->ne[2], from_rows->nb[1], 0);
        ggml_build_forward_expand(graph, ggml_set_rows(ctx, words, ggml_get_rows(ctx, words, from), to_slots));
    }
}

RecurrentState::RecurrentState(const Compute & compute, const std::vector<RecurrentShape> & shapes, const Purpose & purpose, bool is_plan) {
    if (shapes.empty()) {
        return;
    }
    const RecurrentShape & shape = shapes[0]; // all layers are alike
    const auto n = static_cast<int64_t>(shapes.size());
    ctx_ = tensor_context(2);
    layers_ctx_ = tensor_context(2 * shapes.size());
    states_ = ggml_new_tensor_4d(ctx_.get(), GGML_TYPE_F32, shape.state_size, shape.state_size, shape.n_head_v, n);
    convs_ = ggml_new_tensor_3d(ctx_.get(), GGML_TYPE_F32, shape.n_channels, shape.n_conv_rows, n);
    bytes_ = context_bytes(ctx_.get(), compute.buffer_type());
    buffer_ = allocate(ctx_.get(), compute, purpose, is_plan);
    for (size_t i = 0; i < shapes.size(); ++i) {
        RecurrentLayer layer;
        layer.shape = shape;
        layer.state = ggml_new_tensor_3d(layers_ctx_.get(), GGML_TYPE_F32, shape.state_size, shape.state_size, shape.n_head_v);
        layer.conv = ggml_new_tensor_2d(layers_ctx_.get(), GGML_TYPE_F32, shape.n_channels, shape.n_conv_rows);
        place(layer.state, states_, i * states_->nb[3], is_plan);
        place(layer.conv, convs_, i * convs_->nb[2], is_plan);
        layers_.push_back(layer);
    }
}

void RecurrentState::clear() {
    if (buffer_) {
        ggml_backend_buffer_clear(buffer_.get(), 0);
    }
}

uint64_t RecurrentState::saved_bytes() const {
    return states_ ? ggml_nbytes(states_) + ggml_nbytes(convs_) : 0;
}

void RecurrentState::save(uint8_t * out) const {
    const size_t n = ggml_nbytes(states_);
    ggml_backend_tensor_get(states_, out, 0, n);
    ggml_backend_tensor_get(convs_, out + n, 0, ggml_nbytes(convs_));
}

void RecurrentState::restore(const uint8_t * saved) {
    const size_t n = ggml_nbytes(states_);
    ggml_backend_tensor_set(states_, saved, 0, n);
    ggml_backend_tensor_set(convs_, saved + n, 0, ggml_nbytes(convs_));
}

} // namespace dflash
