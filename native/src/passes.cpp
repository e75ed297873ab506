// Building and running passes; see passes.h.
#include "passes.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace dflash {

namespace {

constexpr uint16_t kVisible = 0x0000; // 0 as F16
constexpr uint16_t kHidden = 0xFC00;  // -infinity as F16
constexpr size_t kMaxPasses = 40;
constexpr size_t kGraphNodes = 16384; // 64 layers of about 60 operations, with room

// Row counts at the edges where GPU kernels change class; a graph per bucket can be captured and replayed.
constexpr std::array<int, 10> kRowBuckets = {1, 2, 4, 8, 12, 16, 24, 32, 48, 64};

ggml_context_ptr new_graph_context() {
    ggml_init_params params = {};
    params.mem_size = ggml_tensor_overhead() * kGraphNodes + ggml_graph_overhead_custom(kGraphNodes, false);
    params.no_alloc = true;
    ggml_context_ptr ctx(ggml_init(params));
    if (!ctx) {
        throw Error(DFLASH_OUT_OF_MEMORY, "Not enough memory to describe a computation.");
    }
    return ctx;
}

ggml_tensor * input(ggml_context * ctx, ggml_type type, std::initializer_list<int64_t> ne, const char * name) {
    const std::vector<int64_t> dims(ne);
    ggml_tensor * tensor = ggml_new_tensor(ctx, type, static_cast<int>(dims.size()), dims.data());
    ggml_set_name(tensor, name);
    ggml_set_input(tensor);
    return tensor;
}

// Inputs that no operation reads (the tokens of a pass without embeddings, say) have no memory.
void set(ggml_tensor * tensor, const void * data) {
    if (tensor && tensor->buffer) {
        ggml_backend_tensor_set(tensor, data, 0, ggml_nbytes(tensor));
    }
}

} // namespace

Passes::Passes(const Target & target, const Draft * draft, const SessionShape & shape)
    : target_(target),
      draft_(draft),
      shape_(shape),
      compute_(target.device(), target.n_threads()) {
    // Beyond the context: rows of a verify that may not be kept, and one slot for padding rows.
    const int64_t n_slots = static_cast<int64_t>(shape.context_tokens) + DFLASH_MAX_ROWS + 1;
    timeline_.kv = KvCache(compute_, target.kv_shapes(), shape.kv_k, shape.kv_v, n_slots, "KV cache");
    timeline_.recurrent = RecurrentState(compute_, target.recurrent_shapes());
    if (draft) {
        draft_cache_ = KvCache(compute_, draft->kv_shapes(), kv_ggml_type(DFLASH_KV_AUTO, target.device()), kv_ggml_type(DFLASH_KV_AUTO, target.device()),
                               n_slots, "draft's KV cache");
    }
    target_memory_.reset(ggml_gallocr_new(compute_.buffer_type()));
    draft_memory_.reset(ggml_gallocr_new(compute_.buffer_type()));
    commit_memory_.reset(ggml_gallocr_new(compute_.buffer_type()));
    if (!target_memory_ || !draft_memory_ || !commit_memory_) {
        throw Error(DFLASH_OUT_OF_MEMORY, "Not enough memory for the session.");
    }
    reserve();
}

int Passes::padded_rows(int n_rows) const {
    if (target_.device().is_cpu) {
        return n_rows; // every row costs, and building a graph is cheap beside it
    }
    return *std::lower_bound(kRowBuckets.begin(), kRowBuckets.end(), n_rows);
}

int Passes::kv_bucket(int n_slots) const {
    return std::min((n_slots + 255) / 256 * 256, static_cast<int>(timeline_.kv.n_slots() > 0 ? timeline_.kv.n_slots() : draft_cache_.n_slots()));
}

std::unique_ptr<Pass> Passes::build_target_pass(const PassShape & shape) const {
    auto pass = std::make_unique<Pass>();
    pass->shape = shape;
    pass->ctx = new_graph_context();
    ggml_context * ctx = pass->ctx.get();
    pass->graph = ggml_new_graph_custom(ctx, kGraphNodes, false);
    const int64_t n = shape.n_rows;
    pass->tokens = input(ctx, GGML_TYPE_I32, {n}, "tokens");
    pass->positions = input(ctx, GGML_TYPE_I32, {n}, "positions");
    pass->slots = input(ctx, GGML_TYPE_I64, {n}, "slots");
    pass->mask = input(ctx, GGML_TYPE_F16, {shape.n_kv, n}, "mask");
    if (shape.kind == PassKind::kVerifyTree && !target_.recurrent_shapes().empty()) {
        const RecurrentShape & recurrent = target_.recurrent_shapes()[0];
        pass->conv_index = input(ctx, GGML_TYPE_I32, {n * (recurrent.n_conv_rows + 1)}, "conv_index");
        pass->paths = input(ctx, GGML_TYPE_F32, {n, n * n + n}, "paths");
        pass->masks = input(ctx, GGML_TYPE_F32, {n, n, 2}, "ancestors");
        ggml_init_params params = {};
        params.mem_size = 2 * ggml_tensor_overhead();
        params.no_alloc = true;
        pass->constants_ctx.reset(ggml_init(params));
        const int64_t blocks = target_.n_solve_blocks();
        const int64_t copies = blocks > 1 ? blocks * recurrent.n_head_v : 1;
        pass->identity = ggml_new_tensor_4d(pass->constants_ctx.get(), GGML_TYPE_F32, n, n, blocks, blocks > 1 ? recurrent.n_head_v : 1);
        pass->constants = allocate_cleared(pass->constants_ctx.get(), compute_.buffer_type(), "tree tables");
        std::vector<float> ones(static_cast<size_t>(n * n * copies), 0.0f);
        for (int64_t c = 0; c < copies; ++c) {
            for (int64_t i = 0; i < n; ++i) {
                ones[static_cast<size_t>((c * n + i) * n + i)] = 1.0f;
            }
        }
        ggml_backend_tensor_set(pass->identity, ones.data(), 0, ggml_nbytes(pass->identity));
    }
    if (draft_ && shape.has_features) {
        pass->feature_layers = draft_->config().feature_layers;
        pass->features.assign(pass->feature_layers.size(), nullptr);
    }
    target_.build(*pass, timeline_);
    if (draft_ && shape.has_features) {
        draft_->write_context(*pass, draft_cache_);
    }
    return pass;
}

std::unique_ptr<DraftPass> Passes::build_draft_pass(int n_rows, int n_kv, int k) const {
    auto pass = std::make_unique<DraftPass>();
    pass->n_rows = n_rows;
    pass->n_kv = n_kv;
    pass->k = k;
    pass->ctx = new_graph_context();
    ggml_context * ctx = pass->ctx.get();
    pass->graph = ggml_new_graph_custom(ctx, kGraphNodes, false);
    pass->tokens = input(ctx, GGML_TYPE_I32, {n_rows}, "block");
    pass->positions = input(ctx, GGML_TYPE_I32, {n_rows}, "positions");
    pass->slots = input(ctx, GGML_TYPE_I64, {n_rows}, "slots");
    const std::vector<bool> & sliding = draft_->config().is_sliding;
    const auto n_sliding = static_cast<size_t>(std::count(sliding.begin(), sliding.end(), true));
    if (n_sliding < sliding.size()) {
        pass->mask = input(ctx, GGML_TYPE_F16, {n_kv, n_rows}, "mask");
    }
    if (n_sliding > 0) {
        pass->mask_sliding = input(ctx, GGML_TYPE_F16, {n_kv, n_rows}, "mask_sliding");
    }
    draft_->build(*pass, draft_cache_);
    return pass;
}

void Passes::allocate(ggml_gallocr_t allocator, ggml_cgraph * graph, const char * what) {
    if (!ggml_gallocr_alloc_graph(allocator, graph)) {
        throw Error(DFLASH_OUT_OF_MEMORY, format("Not enough memory on %s for the %s.", target_.device().name.c_str(), what));
    }
}

// Memory runs out here or never: every kind of pass at its largest.
void Passes::reserve() {
    const int n_kv = kv_bucket(INT32_MAX - 256);
    const int chunk = std::min(shape_.prefill_chunk, shape_.context_tokens);
    const bool has_draft = draft_ != nullptr;
    const auto reserve_for = [&](ggml_gallocr_t allocator, ggml_cgraph * graph, const char * what) {
        compute_.require_support(graph, what);
        if (!ggml_gallocr_reserve(allocator, graph)) {
            throw Error(DFLASH_OUT_OF_MEMORY, format("Not enough memory on %s for the %s of %d tokens of context. Choose a smaller context.",
                                                     target_.device().name.c_str(), what, shape_.context_tokens));
        }
    };
    reserve_for(target_memory_.get(), build_target_pass({PassKind::kAppend, chunk, n_kv, false, has_draft})->graph, "prefill");
    reserve_for(target_memory_.get(), build_target_pass({PassKind::kAppend, 1, n_kv, true, has_draft})->graph, "decoding");
    if (shape_.max_rows > 1) {
        const int rows = padded_rows(shape_.max_rows);
        const std::unique_ptr<Pass> verify = build_target_pass({PassKind::kVerifyTree, rows, n_kv, true, has_draft});
        reserve_for(target_memory_.get(), verify->graph, "verification");
        reserve_for(commit_memory_.get(), build_commit(*verify, shape_.max_rows, true)->graph, "commit");
    }
    if (draft_) {
        reserve_for(draft_memory_.get(), build_draft_pass(draft_->config().block_size, n_kv, 16)->graph, "draft");
    }
}

void Passes::forget_passes() {
    passes_.clear();
    last_ = nullptr;
}

Pass & Passes::target_pass(const PassShape & shape) {
    std::unique_ptr<Pass> & slot = passes_[shape];
    if (!slot) {
        if (passes_.size() > kMaxPasses) {
            auto oldest = passes_.end();
            for (auto it = passes_.begin(); it != passes_.end(); ++it) {
                if (it->second && (oldest == passes_.end() || it->second->last_use < oldest->second->last_use)) {
                    oldest = it;
                }
            }
            passes_.erase(oldest);
        }
        std::unique_ptr<Pass> pass = build_target_pass(shape);
        const size_t before = ggml_gallocr_get_buffer_size(target_memory_.get(), 0);
        allocate(target_memory_.get(), pass->graph, "computation");
        if (ggml_gallocr_get_buffer_size(target_memory_.get(), 0) != before) {
            forget_passes(); // the memory moved under the others
        }
        Pass & built = *pass;
        passes_[shape] = std::move(pass);
        built.last_use = ++clock_;
        return built;
    }
    slot->last_use = ++clock_;
    return *slot;
}

DraftPass & Passes::draft_pass(int n_rows, int n_kv, int k) {
    const auto key = std::make_tuple(n_rows, n_kv, k);
    if (const auto found = draft_passes_.find(key); found != draft_passes_.end()) {
        return *found->second;
    }
    if (draft_passes_.size() >= kMaxPasses) {
        draft_passes_.clear();
    }
    std::unique_ptr<DraftPass> pass = build_draft_pass(n_rows, n_kv, k);
    const size_t before = ggml_gallocr_get_buffer_size(draft_memory_.get(), 0);
    allocate(draft_memory_.get(), pass->graph, "draft");
    if (ggml_gallocr_get_buffer_size(draft_memory_.get(), 0) != before) {
        draft_passes_.clear();
    }
    return *(draft_passes_[key] = std::move(pass));
}

void Passes::append(const std::vector<int32_t> & tokens, int n_past, bool has_logits, bool has_features) {
    const int n = static_cast<int>(tokens.size());
    const int n_kv = kv_bucket(n_past + n);
    Pass & pass = target_pass({PassKind::kAppend, n, n_kv, has_logits, has_features && draft_});
    numbers_.resize(static_cast<size_t>(n));
    slots_.resize(static_cast<size_t>(n));
    mask_.assign(static_cast<size_t>(n) * static_cast<size_t>(n_kv), kHidden);
    for (int i = 0; i < n; ++i) {
        numbers_[static_cast<size_t>(i)] = n_past + i;
        slots_[static_cast<size_t>(i)] = n_past + i;
        std::fill_n(mask_.begin() + static_cast<ptrdiff_t>(i) * n_kv, n_past + i + 1, kVisible);
    }
    set(pass.tokens, tokens.data());
    set(pass.positions, numbers_.data());
    set(pass.slots, slots_.data());
    set(pass.mask, mask_.data());
    compute_.run(pass.graph, has_logits ? "decoding" : "prefill");
    last_ = &pass;
    last_rows_ = n;
    has_argmax_ = false;
}

// Which rows feed a tree row's convolution, and the sums and masks of its delta rule.
void Passes::set_tree_tables(Pass & pass, const Tree & tree) {
    const int n = pass.shape.n_rows;
    const int real = tree.n_rows();
    const int n_past_rows = static_cast<int>(target_.recurrent_shapes()[0].n_conv_rows);
    const auto parent_of = [&](int i) { return i < real ? tree.parents[static_cast<size_t>(i)] : 0; }; // padding hangs on the root
    numbers_.resize(static_cast<size_t>(n * (n_past_rows + 1)));
    for (int i = 0; i < n; ++i) {
        int row = i; // walks up the tree, then back through the committed rows
        int beyond_root = 0;
        for (int tap = n_past_rows; tap >= 0; --tap) {
            numbers_[static_cast<size_t>(tap * n + i)] = row >= 0 ? n_past_rows + row : n_past_rows - beyond_root;
            if (row >= 0) {
                row = parent_of(row);
            }
            beyond_root += row < 0 ? 1 : 0;
        }
    }
    set(pass.conv_index, numbers_.data());

    const auto size = static_cast<size_t>(n);
    floats_.assign((size * size + size) * size, 0.0f);
    std::vector<float> masks(2 * size * size, 0.0f);
    for (int i = 0; i < n; ++i) {
        const auto row = static_cast<size_t>(i);
        float * ancestors = &floats_[(size * size + row) * size];
        for (int a = i; a >= 0; a = parent_of(a)) {
            // Rows from below `a` down to i: what the decay between the two is summed over.
            float * between = &floats_[(row * size + static_cast<size_t>(a)) * size];
            for (int b = i; b != a; b = parent_of(b)) {
                between[b] = 1.0f;
            }
            ancestors[a] = 1.0f;
            masks[row * size + static_cast<size_t>(a)] = 1.0f;
            masks[(size + row) * size + static_cast<size_t>(a)] = a == i ? 0.0f : 1.0f;
        }
    }
    set(pass.paths, floats_.data());
    set(pass.masks, masks.data());
}

void Passes::verify(const Tree & tree, int n_past, bool has_features) {
    const int real = tree.n_rows();
    const int n = padded_rows(real);
    const int n_kv = kv_bucket(n_past + real);
    Pass & pass = target_pass({PassKind::kVerifyTree, n, n_kv, true, has_features && draft_});
    const auto rows = static_cast<size_t>(n);
    std::vector<int32_t> tokens(rows, tree.tokens[0]);
    std::vector<int32_t> positions(rows, n_past);
    slots_.assign(rows, timeline_.kv.n_slots() - 1);
    mask_.assign(rows * static_cast<size_t>(n_kv), kHidden);
    for (int i = 0; i < n; ++i) {
        uint16_t * mask = &mask_[static_cast<size_t>(i) * static_cast<size_t>(n_kv)];
        std::fill_n(mask, n_past, kVisible);
        if (i >= real) {
            mask[n_past] = kVisible; // padding looks like a child of the root: finite everywhere
            continue;
        }
        const auto row = static_cast<size_t>(i);
        tokens[row] = tree.tokens[row];
        positions[row] = n_past + tree.depths[row];
        slots_[row] = n_past + i;
        for (int a = i; a >= 0; a = tree.parents[static_cast<size_t>(a)]) {
            mask[n_past + a] = kVisible;
        }
    }
    set(pass.tokens, tokens.data());
    set(pass.positions, positions.data());
    set(pass.slots, slots_.data());
    set(pass.mask, mask_.data());
    if (pass.conv_index) {
        set_tree_tables(pass, tree);
    }
    compute_.run(pass.graph, "verification");
    last_ = &pass;
    last_rows_ = real;
    has_argmax_ = false;
    tree_ = tree;
}

std::unique_ptr<Passes::Commit> Passes::build_commit(const Pass & verified, int n_kept, bool has_moves) const {
    auto commit = std::make_unique<Commit>();
    commit->ctx = new_graph_context();
    ggml_context * ctx = commit->ctx.get();
    commit->graph = ggml_new_graph_custom(ctx, kGraphNodes, false);
    if (!timeline_.recurrent.is_empty()) {
        commit->rows = input(ctx, GGML_TYPE_I32, {n_kept}, "rows");
        commit->conv_rows = input(ctx, GGML_TYPE_I32, {target_.recurrent_shapes()[0].n_conv_rows}, "conv_rows");
        target_.build_commit(ctx, commit->graph, verified, timeline_, commit->rows, commit->conv_rows);
    }
    if (has_moves) {
        commit->from_rows = input(ctx, GGML_TYPE_I32, {n_kept}, "from_rows");
        commit->to_slots = input(ctx, GGML_TYPE_I64, {n_kept}, "to_slots");
        timeline_.kv.move_rows(ctx, commit->graph, commit->from_rows, commit->to_slots);
        if (draft_) {
            draft_cache_.move_rows(ctx, commit->graph, commit->from_rows, commit->to_slots);
        }
    }
    return commit;
}

void Passes::commit(const std::vector<int32_t> & rows, int n_past) {
    const int n = static_cast<int>(rows.size());
    bool has_moves = false;
    for (int i = 0; i < n; ++i) {
        has_moves = has_moves || rows[static_cast<size_t>(i)] != i;
    }
    if (!has_moves && timeline_.recurrent.is_empty()) {
        return; // the kept rows are where they belong
    }
    const std::unique_ptr<Commit> commit = build_commit(*last_, n, has_moves);
    allocate(commit_memory_.get(), commit->graph, "commit");
    if (commit->rows) {
        set(commit->rows, rows.data());
        // The newest rows among (committed convolution rows, kept rows).
        const auto n_conv = static_cast<int>(commit->conv_rows->ne[0]);
        numbers_.clear();
        for (int i = 0; i < n_conv; ++i) {
            const int at = n + i; // in (n_conv old rows, n kept rows)
            numbers_.push_back(at < n_conv ? at : n_conv + rows[static_cast<size_t>(at - n_conv)]);
        }
        set(commit->conv_rows, numbers_.data());
    }
    if (has_moves) {
        numbers_.resize(rows.size());
        slots_.resize(rows.size());
        for (int i = 0; i < n; ++i) {
            numbers_[static_cast<size_t>(i)] = n_past + rows[static_cast<size_t>(i)];
            slots_[static_cast<size_t>(i)] = n_past + i;
        }
        set(commit->from_rows, numbers_.data());
        set(commit->to_slots, slots_.data());
    }
    compute_.run(commit->graph, "commit");
}

const std::vector<int32_t> & Passes::argmax() {
    if (!has_argmax_) {
        argmax_.resize(static_cast<size_t>(last_->shape.n_rows));
        ggml_backend_tensor_get(last_->argmax, argmax_.data(), 0, ggml_nbytes(last_->argmax));
        argmax_.resize(static_cast<size_t>(last_rows_));
        for (const int32_t id : argmax_) {
            if (id < 0 || id >= target_.n_vocab()) {
                throw Error(DFLASH_DEVICE_FAILED,
                            format("The device %s computed no usable next token. The model file may be damaged.", target_.device().name.c_str()));
            }
        }
        has_argmax_ = true;
    }
    return argmax_;
}

const float * Passes::logits(int row) {
    const auto n = static_cast<size_t>(target_.n_vocab());
    if (ggml_backend_buffer_is_host(last_->logits->buffer)) {
        return static_cast<const float *>(last_->logits->data) + static_cast<size_t>(row) * n;
    }
    logits_.resize(n);
    ggml_backend_tensor_get(last_->logits, logits_.data(), static_cast<size_t>(row) * n * sizeof(float), n * sizeof(float));
    return logits_.data();
}

Marginals Passes::draft_block(int32_t root, int n_past, int block_size, int k, float * hidden) {
    const DraftConfig & config = draft_->config();
    const int n_kv = kv_bucket(n_past + block_size);
    DraftPass & pass = draft_pass(block_size, n_kv, k);
    const auto rows = static_cast<size_t>(block_size);
    std::vector<int32_t> tokens(rows, config.mask_token);
    tokens[0] = root;
    std::vector<int32_t> positions(rows);
    slots_.resize(rows);
    for (int i = 0; i < block_size; ++i) {
        positions[static_cast<size_t>(i)] = n_past + i;
        slots_[static_cast<size_t>(i)] = n_past + i;
    }
    set(pass.tokens, tokens.data());
    set(pass.positions, positions.data());
    set(pass.slots, slots_.data());
    const auto set_mask = [&](ggml_tensor * tensor, int window, bool is_causal) {
        if (!tensor) {
            return;
        }
        mask_.assign(rows * static_cast<size_t>(n_kv), kHidden);
        for (int i = 0; i < block_size; ++i) {
            uint16_t * mask = &mask_[static_cast<size_t>(i) * static_cast<size_t>(n_kv)];
            const int first = window > 0 ? std::max(0, n_past + i - window + 1) : 0;
            const int end = n_past + (is_causal ? i + 1 : block_size);
            std::fill(mask + first, mask + end, kVisible);
        }
        set(tensor, mask_.data());
    };
    set_mask(pass.mask, 0, config.is_causal);
    set_mask(pass.mask_sliding, config.sliding_window, config.is_sliding_causal);
    compute_.run(pass.graph, "draft");

    Marginals marginals;
    marginals.n_depths = block_size - 1;
    marginals.k = k;
    const size_t n = static_cast<size_t>(block_size - 1) * static_cast<size_t>(k);
    marginals.ids.resize(n);
    marginals.logprobs.resize(n);
    ggml_backend_tensor_get(pass.ids, marginals.ids.data(), 0, n * sizeof(int32_t));
    ggml_backend_tensor_get(pass.probabilities, marginals.logprobs.data(), 0, n * sizeof(float));
    if (hidden) {
        ggml_backend_tensor_get(pass.hidden, hidden, 0, ggml_nbytes(pass.hidden));
    }
    std::vector<std::pair<float, int32_t>> candidates(static_cast<size_t>(k));
    for (int d = 0; d < marginals.n_depths; ++d) {
        const size_t at = static_cast<size_t>(d) * static_cast<size_t>(k);
        for (size_t j = 0; j < candidates.size(); ++j) {
            const float p = marginals.logprobs[at + j];
            candidates[j] = {p > 0.0f ? std::log(p) : -100.0f, marginals.ids[at + j]}; // also NaN: never worth a node
        }
        std::sort(candidates.begin(), candidates.end(),
                  [](const auto & a, const auto & b) { return a.first != b.first ? a.first > b.first : a.second < b.second; });
        for (size_t j = 0; j < candidates.size(); ++j) {
            marginals.logprobs[at + j] = candidates[j].first;
            marginals.ids[at + j] = candidates[j].second;
        }
    }
    return marginals;
}

void Passes::clear() {
    timeline_.kv.clear();
    timeline_.recurrent.clear();
    draft_cache_.clear();
    last_ = nullptr;
}

void Passes::fill_memory(dflash_memory & out) const {
    out.context_tokens = shape_.context_tokens;
    out.target_weights_bytes = target_.weights().device_bytes();
    out.draft_weights_bytes = draft_ ? draft_->weights().device_bytes() : 0;
    out.kv_cache_bytes = timeline_.kv.bytes();
    out.recurrent_bytes = timeline_.recurrent.bytes();
    out.draft_kv_bytes = draft_cache_.bytes();
    out.compute_bytes = 0;
    for (ggml_gallocr_t memory : {target_memory_.get(), draft_memory_.get(), commit_memory_.get()}) {
        out.compute_bytes += ggml_gallocr_get_buffer_size(memory, 0);
    }
}

} // namespace dflash
