// What the passes of target and draft have in common: how their graphs begin, the sizes they come in, and masks.
#pragma once

#include <initializer_list>
#include <vector>

#include "device.h"

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

constexpr size_t kGraphNodes = 16384; // 64 layers of about 60 operations, with room
constexpr int kWarmRuns = 2;          // GPUs try a graph, capture it, and replay it from then on

ggml_context_ptr new_graph_context();
ggml_cgraph * new_graph(ggml_context * ctx);
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

// Allocate a graph's memory, or throw OUT_OF_MEMORY naming `what`.
void allocate_graph(ggml_gallocr_t allocator, ggml_cgraph * graph, const Device & device, const char * what);
// Reserve it. A plan counts the bytes in *planned instead and has no memory.
void reserve_graph(const Compute & compute, ggml_gallocr_t allocator, ggml_cgraph * graph, const SessionShape & shape, const char * what, uint64_t * planned);

} // namespace dflash
