// The draft's passes for a session; see drafting.h.
#include "drafting.h"

#include <algorithm>
#include <numeric>

#include "read_block.h"
#include "tables.h"

namespace dflash {

namespace {

constexpr size_t kMostPasses = 64;  // kept for replay
constexpr int kMostCandidates = 16; // per drafted position, in steps
constexpr uint64_t kResultBytes = 512u << 10;
constexpr Purpose kDraft = {DFLASH_PART_DRAFT, "draft"};
constexpr Purpose kContext = {DFLASH_PART_DRAFT, "draft's context"};

} // namespace

Drafting::Drafting(const Draft & draft, Compute & target, const SessionShape & shape, bool is_plan)
    : draft_(draft),
      target_(target),
      shape_(shape),
      is_plan_(is_plan),
      own_(draft.is_apart() ? std::make_unique<Compute>(draft.device(), draft.n_threads()) : nullptr),
      results_(draft.device(), kResultBytes) {
    if (own_ && !shape.checks_support) {
        own_->ignore_support();
    }
    for (Products * products : draft.products()) {
        if (is_plan) {
            products->assume(compute(), shape.most_rows());
        } else {
            products->measure(compute(), shape.most_rows());
        }
    }
    const ggml_type type = kv_ggml_type(DFLASH_KV_AUTO, device());
    cache_ = KvCache(compute(), draft.kv_shapes(), type, type, shape.n_slots(), {DFLASH_PART_DRAFT, "draft's KV cache"}, is_plan);
    memory_ = graph_allocator(compute());
    build_constants();
    reserve();
}

void Drafting::build_constants() {
    const int n_kept = is_apart() ? std::max(kMostKept, (shape_.most_rows() + kMostKept - 1) / kMostKept * kMostKept) : kMostKept;
    kept_ctx_ = tensor_context(1);
    kept_ = ggml_new_tensor_2d(kept_ctx_.get(), GGML_TYPE_F32, draft_.n_kept_values(), n_kept);
    kept_buffer_ = allocate(kept_ctx_.get(), target_, kDraft, is_plan_);
    constants_ctx_ = tensor_context(2);
    visible_ = ggml_new_tensor_1d(constants_ctx_.get(), GGML_TYPE_F16, cache_.n_slots());
    received_ = is_apart() ? ggml_new_tensor_2d(constants_ctx_.get(), GGML_TYPE_F32, draft_.n_kept_values(), n_kept) : kept_;
    constants_ = allocate(constants_ctx_.get(), compute(), kDraft, is_plan_);
}

// Memory runs out here or never: every kind of pass at its largest.
void Drafting::reserve() {
    const int n_kv = kv_bucket(device(), INT32_MAX, cache_.n_slots());
    const std::unique_ptr<DraftPass> pass = build_pass(draft_.config().n_rows(draft_.config().block_size), n_kv, kMostCandidates);
    const std::unique_ptr<ContextPass> context = build_context_pass(static_cast<int>(received_->ne[1]));
    inputs_ = InputBlock(compute(), std::max(pass->input_bytes, context->input_bytes), kDraft, is_plan_);
    inputs_.place(pass->inputs);
    planned_bytes_ = reserve_graph(memory_.get(), pass->graph, compute(), kDraft, is_plan_);
    inputs_.place(context->inputs);
    planned_bytes_ = std::max(planned_bytes_, reserve_graph(memory_.get(), context->graph, compute(), kContext, is_plan_));
}

std::unique_ptr<DraftPass> Drafting::build_pass(int n_rows, int n_kv, int k) const {
    auto pass = std::make_unique<DraftPass>();
    pass->n_rows = n_rows;
    pass->n_kv = n_kv;
    pass->k = k;
    const size_t n_nodes = graph_nodes(draft_.config().n_layers);
    pass->ctx = new_graph_context(n_nodes);
    ggml_context * ctx = pass->ctx.get();
    pass->graph = new_graph(ctx, n_nodes);
    pass->tokens = add_input(ctx, pass->inputs, GGML_TYPE_I32, {n_rows}, "block");
    pass->positions = add_input(ctx, pass->inputs, GGML_TYPE_I32, {n_rows}, "positions");
    pass->slots = add_input(ctx, pass->inputs, GGML_TYPE_I64, {n_rows}, "slots");
    const DraftConfig & config = draft_.config();
    const auto n_sliding = static_cast<size_t>(std::count(config.is_sliding.begin(), config.is_sliding.end(), true));
    if (n_sliding < config.is_sliding.size()) {
        pass->mask_end = end_of_mask(ctx, device(), n_kv, n_rows);
        pass->inputs.push_back(pass->mask_end);
        pass->mask = whole_mask(ctx, visible_, pass->mask_end, n_kv);
    }
    if (n_sliding > 0) {
        // The slots that a row of this bucket may look back to.
        const int n_seen = (config.sliding_window + n_rows + 255) / 256 * 256 + 2 * kv_step(device(), n_kv);
        pass->first_sliding = std::max(0, n_kv - n_seen);
        pass->mask_sliding = add_input(ctx, pass->inputs, GGML_TYPE_F16, {n_kv - pass->first_sliding, n_rows}, "mask_sliding");
    }
    draft_.build(*pass, cache_);
    pass->input_bytes = InputBlock::bytes_for(compute(), pass->inputs);
    return pass;
}

std::unique_ptr<ContextPass> Drafting::build_context_pass(int n_rows) const {
    auto pass = std::make_unique<ContextPass>();
    const size_t n_nodes = graph_nodes(draft_.config().n_layers);
    pass->ctx = new_graph_context(n_nodes);
    ggml_context * ctx = pass->ctx.get();
    pass->graph = new_graph(ctx, n_nodes);
    pass->positions = add_input(ctx, pass->inputs, GGML_TYPE_I32, {n_rows}, "positions");
    pass->slots = add_input(ctx, pass->inputs, GGML_TYPE_I64, {n_rows}, "slots");
    draft_.write_context(*pass, received_, cache_);
    pass->input_bytes = InputBlock::bytes_for(compute(), pass->inputs);
    return pass;
}

DraftPass & Drafting::pass_for(int n_rows, int n_kv, int k) {
    const auto key = std::make_tuple(n_rows, n_kv, k);
    if (const auto found = passes_.find(key); found != passes_.end()) {
        return *found->second;
    }
    if (passes_.size() >= kMostPasses) {
        compute().wait();
        passes_.clear();
    }
    std::unique_ptr<DraftPass> pass = build_pass(n_rows, n_kv, k);
    place(pass->inputs, pass->graph, kDraft);
    return *(passes_[key] = std::move(pass));
}

ContextPass & Drafting::context_pass_for(int n_rows) {
    if (const auto found = context_passes_.find(n_rows); found != context_passes_.end()) {
        return *found->second;
    }
    std::unique_ptr<ContextPass> pass = build_context_pass(n_rows);
    place(pass->inputs, pass->graph, kContext);
    return *(context_passes_[n_rows] = std::move(pass));
}

void Drafting::place(const std::vector<ggml_tensor *> & inputs, ggml_cgraph * graph, const Purpose & purpose) {
    inputs_.place(inputs);
    allocate_anew(memory_.get(), graph, compute(), purpose, [this] {
        passes_.clear();
        context_passes_.clear();
    });
    compute().freeze(graph);
}

int Drafting::padded(int n_rows) const {
    if (n_rows > kMostKept) { // of a prompt: few sizes, so that few graphs are kept
        return (n_rows + kMostKept - 1) / kMostKept * kMostKept;
    }
    return padded_rows(device(), n_rows, draft_.weights().products().is_more_faster());
}

void Drafting::write_kept(int first, int n) {
    if (is_apart()) {
        std::vector<int32_t> rows(static_cast<size_t>(n));
        std::iota(rows.begin(), rows.end(), 0);
        receive(rows);
    }
    run_context(first, n);
}

void Drafting::write_rows(const std::vector<int32_t> & rows, int first) {
    receive(rows);
    run_context(first, static_cast<int>(rows.size()));
}

// Bring kept rows over, in this order: runs of neighbours in one piece.
void Drafting::receive(const std::vector<int32_t> & rows) {
    const size_t row_bytes = kept_->nb[1];
    staging_.resize(rows.size() * row_bytes);
    target_.wait();
    for (size_t i = 0; i < rows.size();) {
        size_t end = i + 1;
        while (end < rows.size() && rows[end] == rows[end - 1] + 1) {
            ++end;
        }
        ggml_backend_tensor_get(kept_, staging_.data() + i * row_bytes, static_cast<size_t>(rows[i]) * row_bytes, (end - i) * row_bytes);
        i = end;
    }
    compute().wait(); // the rows before have been read
    ggml_backend_tensor_set(received_, staging_.data(), 0, staging_.size());
}

void Drafting::run_context(int first, int n) {
    const int n_rows = padded(n);
    ContextPass & pass = context_pass_for(n_rows);
    inputs_.begin(compute());
    for (int i = 0; i < n_rows; ++i) { // padding goes to a slot that nobody sees
        inputs_.data<int32_t>(pass.positions)[i] = first + i;
        inputs_.data<int64_t>(pass.slots)[i] = i < n ? first + i : cache_.n_slots() - 1;
    }
    inputs_.send(compute(), pass.input_bytes);
    compute().start(pass.graph, kContext);
}

Marginals Drafting::draft_block(int32_t root, int n_past, int block_size, int k, float * hidden) {
    const DraftConfig & config = draft_.config();
    const int n_rows = config.n_rows(block_size);
    const int n_kv = kv_bucket(device(), n_past + n_rows, cache_.n_slots());
    DraftPass & pass = pass_for(n_rows, n_kv, k);
    inputs_.begin(compute());
    for (int i = 0; i < n_rows; ++i) {
        inputs_.data<int32_t>(pass.tokens)[i] = i == 0 ? root : config.mask_token;
        inputs_.data<int32_t>(pass.positions)[i] = n_past + i;
        inputs_.data<int64_t>(pass.slots)[i] = n_past + i;
    }
    if (pass.mask_end) {
        const int n_columns = static_cast<int>(pass.mask_end->ne[0]);
        fill_rows_mask({n_kv - n_columns, n_columns}, n_rows, n_past, 0, config.is_causal, inputs_.data<uint16_t>(pass.mask_end));
    }
    if (pass.mask_sliding) {
        fill_rows_mask({pass.first_sliding, n_kv - pass.first_sliding}, n_rows, n_past, config.sliding_window, config.is_sliding_causal,
                       inputs_.data<uint16_t>(pass.mask_sliding));
    }
    inputs_.send(compute(), pass.input_bytes);
    compute().start(pass.graph, kDraft);
    is_warm_ = compute().device().is_cpu || ++pass.n_runs > kWarmRuns;

    results_.begin();
    std::vector<const void *> results;
    for (const ggml_tensor * result : pass.results) {
        results.push_back(results_.fetch(compute(), result));
    }
    compute().wait();
    if (hidden) {
        std::fill_n(hidden, static_cast<size_t>(block_size) * static_cast<size_t>(config.n_embd), 0.0f); // a pass may have a row less
        ggml_backend_tensor_get(pass.hidden, hidden, 0, ggml_nbytes(pass.hidden));
    }
    return read_block(pass, results);
}

void Drafting::wait() {
    if (own_) {
        own_->wait();
    }
}

void Drafting::clear() {
    wait();
    cache_.clear();
}

void Drafting::fill_memory(dflash_memory & out) const {
    out.draft_weights_bytes = draft_.device_bytes();
    out.draft_kv_bytes = cache_.bytes();
    out.compute_bytes += context_bytes(kept_ctx_.get(), target_.buffer_type());
    (is_apart() ? out.draft_compute_bytes : out.compute_bytes) += inputs_.bytes() + context_bytes(constants_ctx_.get(), compute().buffer_type()) +
                                                                  (is_plan_ ? planned_bytes_ : ggml_gallocr_get_buffer_size(memory_.get(), 0));
}

} // namespace dflash
