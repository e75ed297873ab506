// Keeping accepted rows; see commit.h.
#include "commit.h"

#include <algorithm>
#include <array>

#include "graphs.h"

namespace dflash {

namespace {

constexpr Purpose kCommit = {DFLASH_PART_COMPUTE, "commit"};
constexpr int64_t kLayersTogether = 8; // the recurrence leaves a copy of the states it moves: bounds its memory

// Counts of kept rows that get a graph of their own; others are filled up with rows that change nothing.
constexpr std::array<int, 14> kKeptCounts = {1, 2, 3, 4, 5, 6, 8, 10, 12, 16, 24, 32, 48, 64};

} // namespace

PendingRows::PendingRows(const Compute & compute, const std::vector<RecurrentShape> & shapes, int n_rows, bool is_plan)
    : n_layers_(static_cast<int64_t>(shapes.size())),
      n_rows_(n_rows),
      is_plan_(is_plan) {
    if (shapes.empty()) {
        return;
    }
    shape_ = shapes[0]; // all layers are alike
    ctx_ = tensor_context(4);
    const auto tensor = [&](int64_t width, int64_t height, int64_t n) { return ggml_new_tensor_3d(ctx_.get(), GGML_TYPE_F32, width, height, n); };
    conv_rows_ = tensor(shape_.n_channels, shape_.n_conv_rows + n_rows, n_layers_);
    qkv_ = tensor(shape_.n_channels, n_rows + 1, n_layers_);
    qk_ = tensor(2 * shape_.n_head_k * shape_.state_size, n_rows + 1, n_layers_);
    gates_ = tensor(shape_.n_head_v, n_rows + 1, 2 * n_layers_);
    bytes_ = context_bytes(ctx_.get(), compute.buffer_type());
    buffer_ = allocate(ctx_.get(), compute, {DFLASH_PART_COMPUTE, "rows of a verification"}, is_plan);
}

void PendingRows::keep(const KeptRows & rows, size_t layer) const {
    const auto place = [&](ggml_tensor * tensor, const ggml_tensor * all, size_t index) {
        if (is_plan_) {
            tensor->buffer = buffer_.get();
            tensor->data = all->data;
        } else if (ggml_backend_tensor_alloc(buffer_.get(), tensor, static_cast<uint8_t *>(all->data) + index * all->nb[2]) != GGML_STATUS_SUCCESS) {
            throw Error(DFLASH_INTERNAL, "The rows of a verification have no place.");
        }
    };
    place(rows.conv_rows, conv_rows_, layer);
    place(rows.qkv, qkv_, layer);
    place(rows.qk, qk_, layer);
    place(rows.decay, gates_, layer);
    place(rows.beta, gates_, static_cast<size_t>(n_layers_) + layer);
}

void PendingRows::build_commit(ggml_context * ctx, ggml_cgraph * graph, const RecurrentState & state, ggml_tensor * rows, ggml_tensor * conv_rows) const {
    const int64_t s = shape_.state_size;
    const int64_t h_k = shape_.n_head_k;
    const int64_t h_v = shape_.n_head_v;
    const int64_t t = rows->ne[0];
    const size_t f = sizeof(float);
    const auto bytes = [f](int64_t elements) { return static_cast<size_t>(elements) * f; };
    ggml_tensor * rows_once = ggml_view_2d(ctx, rows, t, n_layers_, rows->nb[1], 0);
    ggml_tensor * values = ggml_view_3d(ctx, qkv_, s * h_v, qkv_->ne[1], n_layers_, qkv_->nb[1], qkv_->nb[2], bytes(2 * s * h_k));
    ggml_tensor * qk = ggml_get_rows(ctx, qk_, rows_once);     // [2 H_k S, t, layers]
    ggml_tensor * v = ggml_get_rows(ctx, values, rows_once);   // [H_v S, t, layers]
    ggml_tensor * gates = ggml_get_rows(ctx, gates_, rows);    // [H_v, t, 2 layers]
    for (int64_t first = 0; first < n_layers_; first += kLayersTogether) {
        const int64_t n = std::min(kLayersTogether, n_layers_ - first);
        const auto from = static_cast<size_t>(first);
        ggml_tensor * k = ggml_view_4d(ctx, qk, s, h_k, t, n, bytes(s), qk->nb[1], qk->nb[2], from * qk->nb[2] + bytes(s * h_k));
        ggml_tensor * v_part = ggml_view_4d(ctx, v, s, h_v, t, n, bytes(s), v->nb[1], v->nb[2], from * v->nb[2]);
        const auto gate = [&](int64_t layer) {
            return ggml_view_4d(ctx, gates, 1, h_v, t, n, f, gates->nb[1], gates->nb[2], static_cast<size_t>(layer) * gates->nb[2]);
        };
        ggml_tensor * states =
            ggml_view_4d(ctx, state.states(), s, s, h_v, n, state.states()->nb[1], state.states()->nb[2], state.states()->nb[3], from * state.states()->nb[3]);
        // The queries decide only the output, which nobody reads here.
        ggml_tensor * result = ggml_gated_delta_net(ctx, k, k, v_part, gate(first), gate(n_layers_ + first), states, 1);
        // One contiguous copy right after the recurrence: backends that can fuse the two do.
        const int64_t size = s * s * h_v;
        ggml_tensor * last = ggml_view_2d(ctx, result, size, n, bytes(size), bytes(s * h_v * t * n));
        ggml_build_forward_expand(graph, ggml_cpy(ctx, last, ggml_view_2d(ctx, state.states(), size, n, bytes(size), from * state.states()->nb[3])));
    }
    ggml_build_forward_expand(graph, ggml_cpy(ctx, ggml_get_rows(ctx, conv_rows_, conv_rows), state.convs()));
}

Commits::Commits(Compute & compute, Memory memory, int usual_rows, int max_rows, bool is_plan)
    : compute_(compute),
      memory_(memory),
      is_plan_(is_plan),
      allocator_(graph_allocator(compute)) {
    inputs_ = InputBlock(compute, build(counted(max_rows), true)->input_bytes, kCommit, is_plan);
    const std::unique_ptr<Graph> largest = build(counted(usual_rows), true);
    inputs_.place(largest->inputs);
    planned_bytes_ = reserve_graph(allocator_.get(), largest->graph, compute, kCommit, is_plan);
}

uint64_t Commits::bytes() const {
    return (is_plan_ ? planned_bytes_ : ggml_gallocr_get_buffer_size(allocator_.get(), 0)) + inputs_.bytes();
}

int Commits::counted(int n_kept) const {
    if (compute_.device().is_cpu) {
        return n_kept; // every row costs, and building a graph is cheap beside it
    }
    return *std::lower_bound(kKeptCounts.begin(), kKeptCounts.end(), n_kept);
}

std::unique_ptr<Commits::Graph> Commits::build(int n_kept, bool has_moves) const {
    auto built = std::make_unique<Graph>();
    const size_t n_nodes = 256 + 8 * (memory_.recurrent.n_layers() + memory_.kv.n_layers() + memory_.draft.n_layers()); // views among them
    built->ctx = new_graph_context(n_nodes);
    ggml_context * ctx = built->ctx.get();
    built->graph = new_graph(ctx, n_nodes);
    const auto input = [&](ggml_type type, int64_t ne0, int64_t ne1, const char * name) {
        ggml_tensor * tensor = ggml_new_tensor_2d(ctx, type, ne0, ne1);
        ggml_set_name(tensor, name);
        ggml_set_input(tensor);
        built->inputs.push_back(tensor);
        return tensor;
    };
    if (!memory_.recurrent.is_empty()) {
        const auto n_layers = static_cast<int64_t>(memory_.recurrent.n_layers());
        built->rows = input(GGML_TYPE_I32, n_kept, 2 * n_layers, "rows");
        built->conv_rows = input(GGML_TYPE_I32, memory_.recurrent.layer(0).shape.n_conv_rows, n_layers, "conv_rows");
        memory_.pending.build_commit(ctx, built->graph, memory_.recurrent, built->rows, built->conv_rows);
    }
    if (has_moves) {
        built->from_rows = input(GGML_TYPE_I32, n_kept, std::max(memory_.kv.n_moved_together(), memory_.draft.n_moved_together()), "from_rows");
        built->to_slots = input(GGML_TYPE_I64, n_kept, 1, "to_slots");
        memory_.kv.move_rows(ctx, built->graph, built->from_rows, built->to_slots);
        memory_.draft.move_rows(ctx, built->graph, built->from_rows, built->to_slots);
    }
    built->input_bytes = InputBlock::bytes_for(compute_, built->inputs);
    return built;
}

Commits::Graph & Commits::graph_for(int n_kept, bool has_moves) {
    std::unique_ptr<Graph> & slot = graphs_[{n_kept, has_moves}];
    if (slot) {
        return *slot;
    }
    std::unique_ptr<Graph> built = build(n_kept, has_moves);
    inputs_.place(built->inputs);
    allocate_anew(allocator_.get(), built->graph, compute_, kCommit, [this] { graphs_.clear(); });
    compute_.freeze(built->graph);
    return *(graphs_[{n_kept, has_moves}] = std::move(built));
}

void Commits::write_inputs(Graph & graph, const std::vector<int32_t> & rows, int n_past) {
    const size_t n = rows.size();
    if (graph.rows) {
        const auto t = static_cast<size_t>(graph.rows->ne[0]);
        auto * data = inputs_.data<int32_t>(graph.rows);
        for (size_t column = 0; column < static_cast<size_t>(graph.rows->ne[1]); ++column) {
            std::copy(rows.begin(), rows.end(), data + column * t);
            std::fill(data + column * t + n, data + (column + 1) * t, memory_.pending.null_row());
        }
        // The newest rows among (committed convolution rows, kept rows).
        const auto n_conv = static_cast<size_t>(graph.conv_rows->ne[0]);
        auto * conv = inputs_.data<int32_t>(graph.conv_rows);
        for (size_t column = 0; column < static_cast<size_t>(graph.conv_rows->ne[1]); ++column) {
            for (size_t i = 0; i < n_conv; ++i) {
                const size_t at = n + i; // in (n_conv old rows, n kept rows)
                conv[column * n_conv + i] = static_cast<int32_t>(at < n_conv ? at : n_conv + static_cast<size_t>(rows[at - n_conv]));
            }
        }
    }
    if (graph.from_rows) {
        const auto t = static_cast<size_t>(graph.from_rows->ne[0]);
        const auto spare = static_cast<int32_t>(std::max(memory_.kv.n_slots(), memory_.draft.n_slots()) - 1); // moves onto itself
        auto * from = inputs_.data<int32_t>(graph.from_rows);
        auto * to = inputs_.data<int64_t>(graph.to_slots);
        for (size_t i = 0; i < t; ++i) {
            to[i] = i < n ? n_past + static_cast<int>(i) : spare;
            for (size_t column = 0; column < static_cast<size_t>(graph.from_rows->ne[1]); ++column) {
                from[column * t + i] = i < n ? n_past + rows[i] : spare;
            }
        }
    }
}

void Commits::start(const std::vector<int32_t> & rows, int n_past) {
    const int n = static_cast<int>(rows.size());
    bool has_moves = false;
    for (int i = 0; i < n; ++i) {
        has_moves = has_moves || rows[static_cast<size_t>(i)] != i;
    }
    if (!has_moves && memory_.recurrent.is_empty()) {
        return; // the kept rows are where they belong
    }
    Graph & graph = graph_for(counted(n), has_moves);
    inputs_.begin(compute_);
    write_inputs(graph, rows, n_past);
    inputs_.send(compute_, graph.input_bytes);
    compute_.start(graph.graph, kCommit);
}

} // namespace dflash
