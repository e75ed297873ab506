// Beginnings, sizes and masks of graphs; see graphs.h.
#include "graphs.h"

#include <algorithm>
#include <array>
#include <new>

namespace dflash {

namespace {

constexpr size_t kNodesOfLayer = 128; // a DeltaNet layer takes some 80 in a tree, views among them
constexpr size_t kNodesBesideLayers = 2048;

// Row counts at the edges where GPU kernels change class.
constexpr std::array<int, 10> kRowBuckets = {1, 2, 4, 8, 12, 16, 24, 32, 48, 64};

// ggml ends the process where it gets no memory for its own lists of a graph. See that there is some.
void require_lists(ggml_cgraph * graph, const Purpose & purpose) {
    const size_t bytes = static_cast<size_t>(ggml_graph_n_nodes(graph)) * 2048; // about twice what they take
    void * const volatile lists = ::operator new(bytes, std::nothrow);
    if (!lists) {
        throw OutOfMemory(cpu_device(), purpose, bytes);
    }
    ::operator delete(lists);
}

// What a graph takes when it has all of the allocator's memory. The allocator must have none.
uint64_t graph_bytes(ggml_gallocr_t allocator, ggml_cgraph * graph) {
    size_t bytes = 0;
    ggml_gallocr_reserve_n_size(allocator, graph, nullptr, nullptr, &bytes);
    return bytes;
}

} // namespace

size_t graph_nodes(int64_t n_layers) {
    return kNodesBesideLayers + kNodesOfLayer * static_cast<size_t>(n_layers);
}

ContextPtr new_graph_context(size_t n_nodes) {
    return tensor_context(n_nodes, n_nodes);
}

ggml_cgraph * new_graph(ggml_context * ctx, size_t n_nodes) {
    return ggml_new_graph_custom(ctx, n_nodes, false);
}

ggml_tensor * add_input(ggml_context * ctx, std::vector<ggml_tensor *> & inputs, ggml_type type, std::initializer_list<int64_t> ne, const char * name) {
    const std::vector<int64_t> dims(ne);
    ggml_tensor * tensor = ggml_new_tensor(ctx, type, static_cast<int>(dims.size()), dims.data());
    ggml_set_name(tensor, name);
    ggml_set_input(tensor);
    inputs.push_back(tensor);
    return tensor;
}

int padded_rows(const Device & device, int n_rows, bool is_more_faster) {
    if (device.is_cpu) {
        return n_rows;
    }
    const auto * bucket = std::lower_bound(kRowBuckets.begin(), kRowBuckets.end(), n_rows);
    return *bucket == 8 && is_more_faster ? bucket[1] : *bucket;
}

int kv_step(const Device & device, int n_kv) {
    return device.is_cpu ? 256 : n_kv <= 16384 ? 1024 : 2048;
}

int kv_bucket(const Device & device, int n_slots, int64_t most) {
    const int step = kv_step(device, n_slots);
    return n_slots >= most - step ? static_cast<int>(most) : (n_slots + step - 1) / step * step;
}

ggml_tensor * constant_view(ggml_context * ctx, const ggml_tensor * source, std::initializer_list<int64_t> ne, size_t row_bytes) {
    const std::vector<int64_t> dims(ne);
    ggml_tensor * tensor = ggml_new_tensor(ctx, source->type, static_cast<int>(dims.size()), dims.data());
    tensor->nb[1] = row_bytes;
    tensor->nb[2] = 0;
    tensor->nb[3] = 0;
    tensor->buffer = source->buffer;
    tensor->data = source->data;
    return tensor;
}

ggml_tensor * end_of_mask(ggml_context * ctx, const Device & device, int n_kv, int n_rows) {
    const int n_columns = std::min(n_kv, 2 * kv_step(device, n_kv) + (n_rows + 255) / 256 * 256);
    ggml_tensor * end = ggml_new_tensor_2d(ctx, GGML_TYPE_F16, n_columns, n_rows);
    ggml_set_name(end, "mask");
    ggml_set_input(end);
    return end;
}

ggml_tensor * whole_mask(ggml_context * ctx, const ggml_tensor * visible, ggml_tensor * end, int n_kv) {
    const int64_t n_before = n_kv - end->ne[0];
    return n_before > 0 ? ggml_concat(ctx, constant_view(ctx, visible, {n_before, end->ne[1]}, 0), end, 0) : end;
}

ggml_gallocr_ptr graph_allocator(const Compute & compute) {
    return ggml_gallocr_ptr(ggml_gallocr_new(compute.buffer_type())); // always there: it holds nothing yet
}

void allocate_graph(ggml_gallocr_t allocator, ggml_cgraph * graph, const Compute & compute, const Purpose & purpose) {
    require_lists(graph, purpose);
    if (!ggml_gallocr_alloc_graph(allocator, graph)) {
        throw OutOfMemory(compute.device(), purpose, graph_bytes(allocator, graph));
    }
}

uint64_t reserve_graph(ggml_gallocr_t allocator, ggml_cgraph * graph, const Compute & compute, const Purpose & purpose, bool is_plan) {
    compute.require_support(graph, purpose.name);
    require_lists(graph, purpose);
    if (is_plan) {
        return graph_bytes(allocator, graph);
    }
    if (!ggml_gallocr_reserve(allocator, graph)) {
        throw OutOfMemory(compute.device(), purpose, graph_bytes(allocator, graph));
    }
    return ggml_gallocr_get_buffer_size(allocator, 0);
}

} // namespace dflash
