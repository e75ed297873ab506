// Building and running passes; see passes.h.
#include "passes.h"

#include <algorithm>
#include <array>

#include "tables.h"

namespace dflash {

namespace {

constexpr size_t kMaxStepPasses = 64;  // kept for replay
constexpr size_t kMaxChunkPasses = 8;   // of prompts: hardly ever needed twice
constexpr int kWarmRuns = 2;            // GPUs try a graph, capture it, and replay it from then on
constexpr size_t kGraphNodes = 16384; // 64 layers of about 60 operations, with room
constexpr int kMostCandidates = 16;   // per drafted position, in steps
constexpr uint64_t kResultBytes = 512u << 10;

// Row counts at the edges where GPU kernels change class; a graph per bucket can be captured and replayed.
constexpr std::array<int, 10> kRowBuckets = {1, 2, 4, 8, 12, 16, 24, 32, 48, 64};
constexpr uint64_t kLargeDevice = 60ull << 30;

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

ggml_tensor * input(ggml_context * ctx, std::vector<ggml_tensor *> & inputs, ggml_type type, std::initializer_list<int64_t> ne, const char * name) {
    const std::vector<int64_t> dims(ne);
    ggml_tensor * tensor = ggml_new_tensor(ctx, type, static_cast<int>(dims.size()), dims.data());
    ggml_set_name(tensor, name);
    ggml_set_input(tensor);
    inputs.push_back(tensor);
    return tensor;
}

} // namespace

int default_prefill_chunk(const Device & device) {
    if (device.is_cpu) {
        return 128;
    }
    size_t free_bytes = 0;
    size_t total_bytes = 0;
    ggml_backend_dev_memory(device.handle, &free_bytes, &total_bytes);
    return total_bytes >= kLargeDevice ? 2048 : 512;
}

Passes::Passes(const Target & target, const Draft * draft, const SessionShape & shape, bool is_plan)
    : target_(target),
      draft_(draft),
      shape_(shape),
      is_plan_(is_plan),
      compute_(target.device(), target.n_threads()) {
    learn_products();
    // Beyond the context: rows of a verify that may not be kept, and one slot for padding rows.
    const int64_t n_slots = static_cast<int64_t>(shape.context_tokens) + DFLASH_MAX_ROWS + 1;
    timeline_.kv = KvCache(compute_, target.kv_shapes(), shape.kv_k, shape.kv_v, n_slots, "KV cache", is_plan);
    timeline_.recurrent = RecurrentState(compute_, target.recurrent_shapes(), is_plan);
    if (draft) {
        const ggml_type type = kv_ggml_type(DFLASH_KV_AUTO, target.device());
        draft_cache_ = KvCache(compute_, draft->kv_shapes(), type, type, n_slots, "draft's KV cache", is_plan);
    }
    target_memory_.reset(ggml_gallocr_new(compute_.buffer_type()));
    draft_memory_.reset(ggml_gallocr_new(compute_.buffer_type()));
    if (!target_memory_ || !draft_memory_) {
        throw Error(DFLASH_OUT_OF_MEMORY, "Not enough memory for the session.");
    }
    results_ = ResultBlock(target.device(), kResultBytes);
    build_constants();
    if (shape.max_rows > 1) {
        pending_ = PendingRows(compute_, target.recurrent_shapes(), padded_rows(shape.max_rows), is_plan);
        const Commits::Memory memory{pending_, timeline_.recurrent, timeline_.kv, draft_cache_};
        // No path of a draft's tree is longer than its block, and the root comes before it.
        const int longest = draft ? draft->config().block_size + 1 - draft->config().first_row() : shape.max_rows;
        const int usual_rows = std::min(shape.max_rows, longest);
        commits_ = std::make_unique<Commits>(compute_, memory, usual_rows, shape.max_rows, is_plan);
    }
    reserve();
    if (!is_plan && !target.device().is_cpu) {
        check_replay();
    }
}

void Passes::learn_products() {
    const int n_many = std::min(shape_.prefill_chunk, shape_.context_tokens);
    for (Products * products : {&target_.weights().products(), draft_ ? &draft_->weights().products() : nullptr}) {
        if (products && is_plan_) {
            products->assume(compute_, n_many);
        } else if (products) {
            products->measure(compute_, n_many);
        }
    }
}

void Passes::build_constants() {
    ggml_init_params params = {};
    params.mem_size = 3 * ggml_tensor_overhead();
    params.no_alloc = true;
    constants_ctx_.reset(ggml_init(params));
    if (!constants_ctx_) {
        throw Error(DFLASH_OUT_OF_MEMORY, "Not enough memory for the session.");
    }
    visible_ = ggml_new_tensor_1d(constants_ctx_.get(), GGML_TYPE_F16, std::max(timeline_.kv.n_slots(), draft_cache_.n_slots())); // zeros hide nothing
    identity_ = ggml_new_tensor_2d(constants_ctx_.get(), GGML_TYPE_F32, DFLASH_MAX_ROWS, DFLASH_MAX_ROWS);
    kept_ = draft_ ? ggml_new_tensor_2d(constants_ctx_.get(), GGML_TYPE_F32, draft_->n_kept_values(), kMostKept) : nullptr;
    if (is_plan_) {
        constants_ = pretend_allocated(constants_ctx_.get(), compute_.buffer_type());
        return;
    }
    constants_ = allocate_cleared(constants_ctx_.get(), compute_.buffer_type(), "constants");
    std::vector<float> ones(DFLASH_MAX_ROWS * DFLASH_MAX_ROWS, 0.0f);
    for (size_t i = 0; i < DFLASH_MAX_ROWS; ++i) {
        ones[i * DFLASH_MAX_ROWS + i] = 1.0f;
    }
    ggml_backend_tensor_set(identity_, ones.data(), 0, ggml_nbytes(identity_));
}

// A tensor over a constant's memory in which everything beyond rows and columns repeats: higher dimensions, and with
// row_bytes 0 the rows too.
ggml_tensor * Passes::constant(ggml_context * ctx, const ggml_tensor * source, std::initializer_list<int64_t> ne, size_t row_bytes) const {
    const std::vector<int64_t> dims(ne);
    ggml_tensor * tensor = ggml_new_tensor(ctx, source->type, static_cast<int>(dims.size()), dims.data());
    tensor->nb[1] = row_bytes;
    tensor->nb[2] = 0;
    tensor->nb[3] = 0;
    tensor->buffer = source->buffer;
    tensor->data = source->data;
    return tensor;
}

int Passes::padded_rows(int n_rows) const {
    if (target_.device().is_cpu) {
        return n_rows; // every row costs, and building a graph is cheap beside it
    }
    const auto * bucket = std::lower_bound(kRowBuckets.begin(), kRowBuckets.end(), n_rows);
    return *bucket == 8 && target_.weights().products().is_more_faster() ? bucket[1] : *bucket;
}

// Attention looks at multiples of this many slots. A new multiple means new graphs to build and to capture, which takes
// GPUs longer than looking at slots that nobody sees.
int Passes::kv_step(int n_kv) const {
    return target_.device().is_cpu ? 256 : n_kv <= 16384 ? 1024 : 2048;
}

int Passes::kv_bucket(int n_slots) const {
    const int most = static_cast<int>(std::max(timeline_.kv.n_slots(), draft_cache_.n_slots()));
    const int step = kv_step(n_slots);
    return n_slots >= most - step ? most : (n_slots + step - 1) / step * step;
}

// With a window: slots before this one are seen by no row of a pass of this shape.
int Passes::first_seen(int n_kv, int n_rows) const {
    if (shape_.window == 0) {
        return 0;
    }
    const int n_seen = (shape_.window + n_rows + 255) / 256 * 256 + 2 * kv_step(n_kv);
    return std::max(0, n_kv - n_seen);
}

// The columns of a mask that can differ between rows: those of the last step and of the rows themselves.
ggml_tensor * Passes::end_of_mask(ggml_context * ctx, int n_kv, int n_rows) const {
    const int n_columns = std::min(n_kv, 2 * kv_step(n_kv) + (n_rows + 255) / 256 * 256);
    ggml_tensor * end = ggml_new_tensor_2d(ctx, GGML_TYPE_F16, n_columns, n_rows);
    ggml_set_name(end, "mask");
    ggml_set_input(end);
    return end;
}

ggml_tensor * Passes::whole_mask(ggml_context * ctx, ggml_tensor * end, int n_kv) const {
    const int64_t n_before = n_kv - end->ne[0];
    return n_before > 0 ? ggml_concat(ctx, constant(ctx, visible_, {n_before, end->ne[1]}, 0), end, 0) : end;
}

std::unique_ptr<Pass> Passes::build_target_pass(const PassShape & shape) const {
    auto pass = std::make_unique<Pass>();
    pass->shape = shape;
    pass->ctx = new_graph_context();
    pass->pending = &pending_;
    ggml_context * ctx = pass->ctx.get();
    pass->graph = ggml_new_graph_custom(ctx, kGraphNodes, false);
    const int64_t n = shape.n_rows;
    pass->tokens = input(ctx, pass->inputs, GGML_TYPE_I32, {n}, "tokens");
    pass->positions = input(ctx, pass->inputs, GGML_TYPE_I32, {n}, "positions");
    pass->slots = input(ctx, pass->inputs, GGML_TYPE_I64, {n}, "slots");
    if (shape_.window > 0) { // rows differ in what they see of the past, too
        pass->first_slot = first_seen(shape.n_kv, shape.n_rows);
        pass->mask_end = input(ctx, pass->inputs, GGML_TYPE_F16, {pass->n_seen(), n}, "mask");
        pass->mask = pass->mask_end;
    } else {
        pass->mask_end = end_of_mask(ctx, shape.n_kv, shape.n_rows);
        pass->inputs.push_back(pass->mask_end);
        pass->mask = whole_mask(ctx, pass->mask_end, shape.n_kv);
    }
    if (shape.kind == PassKind::kVerifyTree && !target_.recurrent_shapes().empty()) {
        const RecurrentShape & recurrent = target_.recurrent_shapes()[0];
        pass->conv_index = input(ctx, pass->inputs, GGML_TYPE_I32, {n * (recurrent.n_conv_rows + 1)}, "conv_index");
        pass->paths = input(ctx, pass->inputs, GGML_TYPE_F32, {n, n * n + n}, "paths");
        pass->masks = input(ctx, pass->inputs, GGML_TYPE_F32, {n, n, 2}, "ancestors");
        const int64_t blocks = target_.n_solve_blocks();
        pass->identity = constant(ctx, identity_, {n, n, blocks, blocks > 1 ? recurrent.n_head_v : 1}, identity_->nb[1]);
    }
    if (draft_ && (shape.has_features || shape.keeps_features)) {
        pass->feature_layers = draft_->config().feature_layers;
        pass->features.assign(pass->feature_layers.size(), nullptr);
    }
    target_.build(*pass, timeline_);
    if (draft_ && shape.has_features) {
        draft_->write_context(*pass, draft_cache_);
    }
    if (draft_ && shape.keeps_features) {
        pass->kept_slots = input(ctx, pass->inputs, GGML_TYPE_I64, {n}, "kept_slots");
        draft_->keep_features(*pass, kept_);
    }
    pass->input_bytes = InputBlock::bytes_for(compute_, pass->inputs);
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
    pass->tokens = input(ctx, pass->inputs, GGML_TYPE_I32, {n_rows}, "block");
    pass->positions = input(ctx, pass->inputs, GGML_TYPE_I32, {n_rows}, "positions");
    pass->slots = input(ctx, pass->inputs, GGML_TYPE_I64, {n_rows}, "slots");
    const DraftConfig & config = draft_->config();
    const auto n_sliding = static_cast<size_t>(std::count(config.is_sliding.begin(), config.is_sliding.end(), true));
    if (n_sliding < config.is_sliding.size()) {
        pass->mask_end = end_of_mask(ctx, n_kv, n_rows);
        pass->inputs.push_back(pass->mask_end);
        pass->mask = whole_mask(ctx, pass->mask_end, n_kv);
    }
    if (n_sliding > 0) {
        // The slots that a row of this bucket may look back to.
        const int n_seen = (config.sliding_window + n_rows + 255) / 256 * 256 + 2 * kv_step(n_kv);
        pass->first_sliding = std::max(0, n_kv - n_seen);
        pass->mask_sliding = input(ctx, pass->inputs, GGML_TYPE_F16, {n_kv - pass->first_sliding, n_rows}, "mask_sliding");
    }
    draft_->build(*pass, draft_cache_);
    pass->input_bytes = InputBlock::bytes_for(compute_, pass->inputs);
    return pass;
}

std::unique_ptr<ContextPass> Passes::build_context_pass(int n_rows) const {
    auto pass = std::make_unique<ContextPass>();
    pass->ctx = new_graph_context();
    ggml_context * ctx = pass->ctx.get();
    pass->graph = ggml_new_graph_custom(ctx, kGraphNodes, false);
    pass->positions = input(ctx, pass->inputs, GGML_TYPE_I32, {n_rows}, "positions");
    pass->slots = input(ctx, pass->inputs, GGML_TYPE_I64, {n_rows}, "slots");
    draft_->write_context(*pass, kept_, draft_cache_);
    pass->input_bytes = InputBlock::bytes_for(compute_, pass->inputs);
    return pass;
}

void Passes::allocate(ggml_gallocr_t allocator, ggml_cgraph * graph, const char * what) {
    if (!ggml_gallocr_alloc_graph(allocator, graph)) {
        throw Error(DFLASH_OUT_OF_MEMORY, format("Not enough memory on %s for the %s.", target_.device().name.c_str(), what));
    }
}

// Memory runs out here or never: every kind of pass at its largest.
void Passes::reserve() {
    const int n_kv = kv_bucket(INT32_MAX);
    const int chunk = std::min(shape_.prefill_chunk, shape_.context_tokens);
    const bool has_draft = draft_ != nullptr;
    std::vector<std::pair<std::unique_ptr<Pass>, const char *>> largest;
    largest.emplace_back(build_target_pass({PassKind::kAppend, chunk, n_kv, false, has_draft}), "prefill");
    largest.emplace_back(build_target_pass({PassKind::kAppend, 1, n_kv, true, has_draft}), "decoding");
    largest.emplace_back(build_target_pass({PassKind::kAppend, 1, n_kv, true, false, has_draft}), "decoding");
    // Logits of several rows at once: probes.
    largest.emplace_back(build_target_pass({PassKind::kAppend, std::min(chunk, DFLASH_MAX_ROWS), n_kv, true, has_draft}), "decoding");
    if (shape_.max_rows > 1) {
        const int rows = padded_rows(shape_.max_rows);
        largest.emplace_back(build_target_pass({PassKind::kVerifyTree, rows, n_kv, true, has_draft}), "verification");
        if (has_recurrent()) {
            largest.emplace_back(build_target_pass({PassKind::kVerifyChain, rows, n_kv, true, has_draft}), "verification");
        }
    }
    uint64_t input_bytes = 0;
    for (const auto & [pass, what] : largest) {
        input_bytes = std::max(input_bytes, pass->input_bytes);
    }
    target_inputs_ = InputBlock(compute_, input_bytes, is_plan_);
    const auto reserve_for = [&](ggml_gallocr_t allocator, ggml_cgraph * graph, const char * what) {
        compute_.require_support(graph, what);
        if (is_plan_) {
            size_t bytes = 0;
            ggml_gallocr_reserve_n_size(allocator, graph, nullptr, nullptr, &bytes);
            planned_bytes_[allocator] = std::max<uint64_t>(planned_bytes_[allocator], bytes);
            return;
        }
        if (!ggml_gallocr_reserve(allocator, graph)) {
            throw Error(DFLASH_OUT_OF_MEMORY, format("Not enough memory on %s for the %s of %d tokens of context. Choose a smaller context.",
                                                     target_.device().name.c_str(), what, shape_.context_tokens));
        }
    };
    for (const auto & [pass, what] : largest) {
        target_inputs_.place(pass->inputs);
        reserve_for(target_memory_.get(), pass->graph, what);
    }
    if (draft_) {
        const std::unique_ptr<DraftPass> pass = build_draft_pass(draft_->config().n_rows(draft_->config().block_size), n_kv, kMostCandidates);
        const std::unique_ptr<ContextPass> context = build_context_pass(kMostKept);
        draft_inputs_ = InputBlock(compute_, std::max(pass->input_bytes, context->input_bytes), is_plan_);
        draft_inputs_.place(pass->inputs);
        reserve_for(draft_memory_.get(), pass->graph, "draft");
        draft_inputs_.place(context->inputs);
        reserve_for(draft_memory_.get(), context->graph, "draft");
    }
}

Pass & Passes::target_pass(const PassShape & shape) {
    if (const auto found = passes_.find(shape); found != passes_.end()) {
        found->second->last_use = ++clock_;
        return *found->second;
    }
    // Passes of a kind make room for their like: the least recently used one goes.
    auto oldest = passes_.end();
    size_t n_alike = 0;
    for (auto it = passes_.begin(); it != passes_.end(); ++it) {
        if (it->first.has_logits == shape.has_logits) {
            ++n_alike;
            oldest = oldest == passes_.end() || it->second->last_use < oldest->second->last_use ? it : oldest;
        }
    }
    if (n_alike >= (shape.has_logits ? kMaxStepPasses : kMaxChunkPasses)) {
        compute_.wait();
        passes_.erase(oldest);
    }
    std::unique_ptr<Pass> pass = build_target_pass(shape);
    target_inputs_.place(pass->inputs);
    const size_t before = ggml_gallocr_get_buffer_size(target_memory_.get(), 0);
    allocate(target_memory_.get(), pass->graph, "computation");
    if (ggml_gallocr_get_buffer_size(target_memory_.get(), 0) != before) {
        passes_.clear(); // the memory moved under the others
    }
    if (shape.has_logits) {
        compute_.freeze(pass->graph); // steps are repeated, chunks of a prompt are not
    }
    pass->last_use = ++clock_;
    return *(passes_[shape] = std::move(pass));
}

DraftPass & Passes::draft_pass(int n_rows, int n_kv, int k) {
    const auto key = std::make_tuple(n_rows, n_kv, k);
    if (const auto found = draft_passes_.find(key); found != draft_passes_.end()) {
        return *found->second;
    }
    if (draft_passes_.size() >= kMaxStepPasses) {
        compute_.wait();
        draft_passes_.clear();
    }
    std::unique_ptr<DraftPass> pass = build_draft_pass(n_rows, n_kv, k);
    place_draft_pass(pass->inputs, pass->graph, "draft");
    return *(draft_passes_[key] = std::move(pass));
}

ContextPass & Passes::context_pass(int n_rows) {
    if (const auto found = context_passes_.find(n_rows); found != context_passes_.end()) {
        return *found->second;
    }
    std::unique_ptr<ContextPass> pass = build_context_pass(n_rows);
    place_draft_pass(pass->inputs, pass->graph, "draft's context");
    return *(context_passes_[n_rows] = std::move(pass));
}

void Passes::place_draft_pass(const std::vector<ggml_tensor *> & inputs, ggml_cgraph * graph, const char * what) {
    draft_inputs_.place(inputs);
    const size_t before = ggml_gallocr_get_buffer_size(draft_memory_.get(), 0);
    allocate(draft_memory_.get(), graph, what);
    if (ggml_gallocr_get_buffer_size(draft_memory_.get(), 0) != before) {
        draft_passes_.clear(); // the memory moved under them
        context_passes_.clear();
    }
    compute_.freeze(graph);
}

void Passes::run(Pass & pass, int n_real, const char * what) {
    target_inputs_.send(compute_, pass.input_bytes);
    last_ = nullptr;
    last_waits_ = compute_.n_waits();
    compute_.start(pass.graph, what);
    is_warm_ = compute_.device().is_cpu || ++pass.n_runs > kWarmRuns;
    last_ = &pass;
    last_rows_ = n_real;
    has_argmax_ = false;
}

void Passes::append(const std::vector<int32_t> & tokens, int n_past, bool has_logits, bool has_features) {
    const int n = static_cast<int>(tokens.size());
    append_rows(tokens, n_past, {PassKind::kAppend, n, kv_bucket(n_past + n), has_logits, has_features && draft_}, 0);
}

void Passes::append_keeping(int32_t token, int n_past, int kept_row) {
    append_rows({token}, n_past, {PassKind::kAppend, 1, kv_bucket(n_past + 1), true, false, true}, kept_row);
}

void Passes::append_rows(const std::vector<int32_t> & tokens, int n_past, const PassShape & shape, int kept_row) {
    const int n = shape.n_rows;
    const int n_kv = shape.n_kv;
    Pass & pass = target_pass(shape);
    target_inputs_.begin(compute_);
    std::copy(tokens.begin(), tokens.end(), target_inputs_.data<int32_t>(pass.tokens));
    for (int i = 0; i < n; ++i) {
        target_inputs_.data<int32_t>(pass.positions)[i] = n_past + i;
        target_inputs_.data<int64_t>(pass.slots)[i] = n_past + i;
    }
    if (pass.kept_slots) {
        target_inputs_.data<int64_t>(pass.kept_slots)[0] = kept_row;
    }
    const int n_columns = static_cast<int>(pass.mask_end->ne[0]);
    fill_rows_mask({n_kv - n_columns, n_columns}, n, n_past, shape_.window, true, target_inputs_.data<uint16_t>(pass.mask_end));
    run(pass, n, shape.has_logits ? "decoding" : "prefill");
    if (!shape.has_logits) {
        compute_.wait(); // nobody asks for a result, and what was done is reported
    }
}

bool Passes::is_chain_pass(const Tree & tree) const {
    for (int i = 1; i < tree.n_rows(); ++i) {
        if (tree.parents[static_cast<size_t>(i)] != i - 1) {
            return false;
        }
    }
    return has_recurrent() && tree.n_nodes() > 0;
}

void Passes::verify(const Tree & tree, int n_past, bool has_features) {
    if (!commits_) {
        throw Error(DFLASH_BAD_ARGUMENT, "This session was opened without room for trees.");
    }
    const int n = padded_rows(tree.n_rows());
    const int n_kv = kv_bucket(n_past + tree.n_rows());
    const PassKind kind = is_chain_pass(tree) ? PassKind::kVerifyChain : PassKind::kVerifyTree;
    Pass & pass = target_pass({kind, n, n_kv, true, has_features && draft_});
    target_inputs_.begin(compute_);
    for (int i = 0; i < n; ++i) {
        const bool is_real = i < tree.n_rows();
        const size_t row = is_real ? static_cast<size_t>(i) : 0; // padding looks like the root, in a slot that nobody sees
        target_inputs_.data<int32_t>(pass.tokens)[i] = tree.tokens[row];
        target_inputs_.data<int32_t>(pass.positions)[i] = n_past + tree.depths[row];
        target_inputs_.data<int64_t>(pass.slots)[i] = is_real ? n_past + i : std::max(timeline_.kv.n_slots(), draft_cache_.n_slots()) - 1;
    }
    const int n_columns = static_cast<int>(pass.mask_end->ne[0]);
    fill_tree_mask({n_kv - n_columns, n_columns}, tree, n, n_past, shape_.window, target_inputs_.data<uint16_t>(pass.mask_end));
    if (pass.conv_index) {
        fill_conv_index(tree, n, static_cast<int>(target_.recurrent_shapes()[0].n_conv_rows), target_inputs_.data<int32_t>(pass.conv_index));
        fill_paths(tree, n, target_inputs_.data<float>(pass.paths), target_inputs_.data<float>(pass.masks));
    }
    run(pass, tree.n_rows(), "verification");
    tree_ = tree;
}

void Passes::write_kept(int first, int n) {
    const int n_rows = padded_rows(n);
    ContextPass & pass = context_pass(n_rows);
    draft_inputs_.begin(compute_);
    for (int i = 0; i < n_rows; ++i) { // padding goes to a slot that nobody sees
        draft_inputs_.data<int32_t>(pass.positions)[i] = first + i;
        draft_inputs_.data<int64_t>(pass.slots)[i] = i < n ? first + i : draft_cache_.n_slots() - 1;
    }
    draft_inputs_.send(compute_, pass.input_bytes);
    compute_.start(pass.graph, "draft's context");
}

void Passes::commit(const std::vector<int32_t> & rows, int n_past) {
    commits_->start(rows, n_past);
}

const std::vector<int32_t> & Passes::argmax() {
    if (!has_argmax_) {
        results_.begin();
        const auto * ids = static_cast<const int32_t *>(results_.fetch(compute_, last_->argmax));
        compute_.wait();
        argmax_.assign(ids, ids + last_rows_);
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
    if (last_waits_ == compute_.n_waits()) {
        compute_.wait();
    }
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
    const int n_rows = config.n_rows(block_size);
    const int n_kv = kv_bucket(n_past + n_rows);
    DraftPass & pass = draft_pass(n_rows, n_kv, k);
    draft_inputs_.begin(compute_);
    for (int i = 0; i < n_rows; ++i) {
        draft_inputs_.data<int32_t>(pass.tokens)[i] = i == 0 ? root : config.mask_token;
        draft_inputs_.data<int32_t>(pass.positions)[i] = n_past + i;
        draft_inputs_.data<int64_t>(pass.slots)[i] = n_past + i;
    }
    if (pass.mask_end) {
        const int n_columns = static_cast<int>(pass.mask_end->ne[0]);
        fill_rows_mask({n_kv - n_columns, n_columns}, n_rows, n_past, 0, config.is_causal, draft_inputs_.data<uint16_t>(pass.mask_end));
    }
    if (pass.mask_sliding) {
        fill_rows_mask({pass.first_sliding, n_kv - pass.first_sliding}, n_rows, n_past, config.sliding_window, config.is_sliding_causal,
                       draft_inputs_.data<uint16_t>(pass.mask_sliding));
    }
    draft_inputs_.send(compute_, pass.input_bytes);
    compute_.start(pass.graph, "draft");
    is_draft_warm_ = compute_.device().is_cpu || ++pass.n_runs > kWarmRuns;

    results_.begin();
    std::vector<const void *> results;
    for (const ggml_tensor * result : pass.results) {
        results.push_back(results_.fetch(compute_, result));
    }
    compute_.wait();
    if (hidden) {
        std::fill_n(hidden, static_cast<size_t>(block_size) * static_cast<size_t>(config.n_embd), 0.0f); // a pass may have a row less
        ggml_backend_tensor_get(pass.hidden, hidden, 0, ggml_nbytes(pass.hidden));
    }
    return read_block(pass, results);
}

RecurrentState & Passes::recurrent() {
    compute_.wait();
    return timeline_.recurrent;
}

void Passes::clear() {
    compute_.wait();
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
    out.compute_bytes = pending_.bytes() + (commits_ ? commits_->bytes() : 0) + target_inputs_.bytes() + draft_inputs_.bytes() +
                        context_bytes(constants_ctx_.get(), compute_.buffer_type());
    for (ggml_gallocr_t memory : {target_memory_.get(), draft_memory_.get()}) {
        const auto planned = planned_bytes_.find(memory);
        out.compute_bytes += planned != planned_bytes_.end() ? planned->second : ggml_gallocr_get_buffer_size(memory, 0);
    }
}

} // namespace dflash
