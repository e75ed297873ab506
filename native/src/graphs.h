// What the passes of target and draft have in common: how their graphs begin, the sizes they come in, and masks.
#pragma once

#include <initializer_list>
#include <vector>

#include "ggml-alloc.h"
#include "memory.h"

namespace dflash {

// The sizes of a session.
struct SessionShape {
    int context_tokens = 0;
    int prefill_chunk = 0;
    int max_rows = 1; // of a verify, root included
    int window = 0;   // positions that the target's attention looks back over, its own included; 0: all
    ggml_type kv_k = GGML_TYPE_F16;
    ggml_type kv_v = GGML_TYPE_F16;
    bool checks_support = true; // false: the sizes of a plan, whether the device can run it or not

    // Beyond the context: rows of a verify that may not be kept, and one slot for padding rows.
    int64_t n_slots() const { return static_cast<int64_t>(context_tokens) + DFLASH_MAX_ROWS + 1; }
    int most_rows() const { return prefill_chunk < context_tokens ? prefill_chunk : context_tokens; } // of one append
};

constexpr int kWarmRuns = 2;          // GPUs try a graph, capture it, and replay it from then on

// Room for the graph of a pass over n_layers layers: tensors, views among them. ggml ends the process where there is too little.
size_t graph_nodes(int64_t n_layers);
ContextPtr new_graph_context(size_t n_nodes);
ggml_cgraph * new_graph(ggml_context * ctx, size_t n_nodes);
// An input that the host writes anew for every run, noted in `inputs`.
ggml_tensor * add_input(ggml_context * ctx, std::vector<ggml_tensor *> & inputs, ggml_type type, std::initializer_list<int64_t> ne, const char * name);

// A graph per bucket can be captured and replayed: how many rows (at most DFLASH_MAX_ROWS) are computed for n. On CPUs
// just these: every row costs, and building a graph is cheap beside it. is_more_faster: Products' word on this device.
int padded_rows(const Device & device, int n_rows, bool is_more_faster);
// Attention looks at multiples of this many slots. A new multiple means new graphs to build and to capture, which takes
// GPUs longer than looking at slots that nobody sees.
int kv_step(const Device & device, int n_kv);
int kv_bucket(const Device & device, int n_slots, int64_t most);

// A tensor over a constant's memory in which everything beyond rows and columns repeats: higher dimensions, and with
// row_bytes 0 the rows too.
ggml_tensor * constant_view(ggml_context * ctx, const ggml_tensor * source, std::initializer_list<int64_t> ne, size_t row_bytes);
// The columns of a mask that can differ between rows: those of the last step and of the rows themselves. An input.
ggml_tensor * end_of_mask(ggml_context * ctx, const Device & device, int n_kv, int n_rows);
// With `visible` (F16, zeros: hides nothing) in front of them, [n_kv, n_rows].
ggml_tensor * whole_mask(ggml_context * ctx, const ggml_tensor * visible, ggml_tensor * end, int n_kv);

// What gives graphs their memory, one after the other the same; none yet.
ggml_gallocr_ptr graph_allocator(const Compute & compute);
// Give a graph its memory, or throw OUT_OF_MEMORY: then graphs that had theirs from this allocator have none any more.
void allocate_graph(ggml_gallocr_t allocator, ggml_cgraph * graph, const Compute & compute, const Purpose & purpose);
// The same, and `forget` the other graphs when the memory has moved under them.
template <typename Forget>
void allocate_anew(ggml_gallocr_t allocator, ggml_cgraph * graph, const Compute & compute, const Purpose & purpose, const Forget & forget) {
    const size_t before = ggml_gallocr_get_buffer_size(allocator, 0);
    try {
        allocate_graph(allocator, graph, compute, purpose);
    } catch (...) {
        forget();
        throw;
    }
    if (ggml_gallocr_get_buffer_size(allocator, 0) != before) {
        forget();
    }
}
// Reserve it, if the device can run the graph, and return what the allocator then has. A plan has no memory: what the graph
// alone would take.
uint64_t reserve_graph(ggml_gallocr_t allocator, ggml_cgraph * graph, const Compute & compute, const Purpose & purpose, bool is_plan);

} // namespace dflash
