// Building and running passes; see passes.h.
#include "passes.h"

#include <algorithm>

#include "tables.h"

namespace dflash {

namespace {

constexpr size_t kMaxStepPasses = 64; // kept for replay
constexpr size_t kMaxChunkPasses = 8;  // of prompts: hardly ever needed twice
constexpr uint64_t kResultBytes = 512u << 10;

} // namespace

int default_prefill_chunk(const Device & device) {
    if (device.is_cpu) {
        return 128;
    }
    return is_large(device) ? 2048 : 512;
}

Passes::Passes(const Target & target, const Draft * draft, const SessionShape & shape, bool is_plan)
    : target_(target),
      shape_(shape),
      is_plan_(is_plan),
      compute_(target.device(), target.n_threads()) {
    if (!shape.checks_support) {
        compute_.ignore_support();
    }
    learn_products();
    timeline_.kv = KvCache(compute_, target.kv_shapes(), shape.kv_k, shape.kv_v, shape.n_slots(), {DFLASH_PART_KV_CACHE, "KV cache"}, is_plan);
    timeline_.recurrent = RecurrentState(compute_, target.recurrent_shapes(), {DFLASH_PART_KV_CACHE, "recurrent state"}, is_plan);
    if (draft) {
        drafting_ = std::make_unique<Drafting>(*draft, compute_, shape, is_plan);
    }
    target_memory_ = graph_allocator(compute_);
    results_ = ResultBlock(target.device(), kResultBytes);
    build_constants();
    if (shape.max_rows > 1) {
        pending_ = PendingRows(compute_, target.recurrent_shapes(), padded(shape.max_rows), is_plan);
        const Commits::Memory memory{pending_, timeline_.recurrent, timeline_.kv, has_shared_draft() ? drafting_->cache() : no_cache_};
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
    Products & products = target_.weights().products();
    if (is_plan_) {
        products.assume(compute_, shape_.most_rows());
    } else {
        products.measure(compute_, shape_.most_rows());
    }
}

void Passes::build_constants() {
    constants_ctx_ = tensor_context(2);
    visible_ = ggml_new_tensor_1d(constants_ctx_.get(), GGML_TYPE_F16, timeline_.kv.n_slots()); // zeros hide nothing
    identity_ = ggml_new_tensor_2d(constants_ctx_.get(), GGML_TYPE_F32, DFLASH_MAX_ROWS, DFLASH_MAX_ROWS);
    constants_ = allocate(constants_ctx_.get(), compute_, {DFLASH_PART_COMPUTE, "constants"}, is_plan_);
    if (is_plan_) {
        return;
    }
    std::vector<float> ones(DFLASH_MAX_ROWS * DFLASH_MAX_ROWS, 0.0f);
    for (size_t i = 0; i < DFLASH_MAX_ROWS; ++i) {
        ones[i * DFLASH_MAX_ROWS + i] = 1.0f;
    }
    ggml_backend_tensor_set(identity_, ones.data(), 0, ggml_nbytes(identity_));
}

int Passes::padded(int n_rows) const {
    return padded_rows(target_.device(), n_rows, target_.weights().products().is_more_faster());
}

int Passes::kv_bucket(int n_slots) const {
    return dflash::kv_bucket(target_.device(), n_slots, timeline_.kv.n_slots());
}

// Features go straight into the context of a draft beside the target; for one apart they are kept, and brought over.
PassShape Passes::shape_of(PassKind kind, int n_rows, int n_kv, bool has_logits, bool has_features) const {
    return {kind, n_rows, n_kv, has_logits, has_features && has_shared_draft(), has_features && drafting_ && drafting_->is_apart()};
}

// With a window: slots before this one are seen by no row of a pass of this shape.
int Passes::first_seen(int n_kv, int n_rows) const {
    if (shape_.window == 0) {
        return 0;
    }
    const int n_seen = (shape_.window + n_rows + 255) / 256 * 256 + 2 * kv_step(target_.device(), n_kv);
    return std::max(0, n_kv - n_seen);
}

std::unique_ptr<Pass> Passes::build_target_pass(const PassShape & shape) const {
    auto pass = std::make_unique<Pass>();
    pass->shape = shape;
    const size_t n_nodes = graph_nodes(target_.n_layers());
    pass->ctx = new_graph_context(n_nodes);
    pass->pending = &pending_;
    ggml_context * ctx = pass->ctx.get();
    pass->graph = new_graph(ctx, n_nodes);
    const int64_t n = shape.n_rows;
    pass->tokens = add_input(ctx, pass->inputs, GGML_TYPE_I32, {n}, "tokens");
    pass->positions = add_input(ctx, pass->inputs, GGML_TYPE_I32, {n}, "positions");
    pass->slots = add_input(ctx, pass->inputs, GGML_TYPE_I64, {n}, "slots");
    if (shape_.window > 0) { // rows differ in what they see of the past, too
        pass->first_slot = first_seen(shape.n_kv, shape.n_rows);
        pass->mask_end = add_input(ctx, pass->inputs, GGML_TYPE_F16, {pass->n_seen(), n}, "mask");
        pass->mask = pass->mask_end;
    } else {
        pass->mask_end = end_of_mask(ctx, target_.device(), shape.n_kv, shape.n_rows);
        pass->inputs.push_back(pass->mask_end);
        pass->mask = whole_mask(ctx, visible_, pass->mask_end, shape.n_kv);
    }
    if (shape.kind == PassKind::kVerifyTree && !target_.recurrent_shapes().empty()) {
        const RecurrentShape & recurrent = target_.recurrent_shapes()[0];
        pass->conv_index = add_input(ctx, pass->inputs, GGML_TYPE_I32, {n * (recurrent.n_conv_rows + 1)}, "conv_index");
        pass->paths = add_input(ctx, pass->inputs, GGML_TYPE_F32, {n, n * n + n}, "paths");
        pass->masks = add_input(ctx, pass->inputs, GGML_TYPE_F32, {n, n, 2}, "ancestors");
        const int64_t blocks = target_.n_solve_blocks();
        pass->identity = constant_view(ctx, identity_, {n, n, blocks, blocks > 1 ? recurrent.n_head_v : 1}, identity_->nb[1]);
    }
    if (shape.has_features || shape.keeps_features) {
        pass->feature_layers = drafting_->draft().config().feature_layers;
        pass->features.assign(pass->feature_layers.size(), nullptr);
    }
    target_.build(*pass, timeline_);
    if (shape.has_features) {
        drafting_->draft().write_context(*pass, drafting_->cache());
    }
    if (shape.keeps_features) {
        pass->kept_slots = add_input(ctx, pass->inputs, GGML_TYPE_I64, {n}, "kept_slots");
        drafting_->draft().keep_features(*pass, drafting_->kept());
    }
    pass->input_bytes = InputBlock::bytes_for(compute_, pass->inputs);
    return pass;
}

// Memory runs out here or never: every kind of pass at its largest.
void Passes::reserve() {
    const int n_kv = kv_bucket(INT32_MAX);
    const int chunk = shape_.most_rows();
    const bool has_draft = drafting_ != nullptr;
    std::vector<std::pair<std::unique_ptr<Pass>, const char *>> largest;
    const auto add = [&](const PassShape & shape, const char * what) { largest.emplace_back(build_target_pass(shape), what); };
    add(shape_of(PassKind::kAppend, chunk, n_kv, false, has_draft), "prefill");
    add(shape_of(PassKind::kAppend, 1, n_kv, true, has_draft), "decoding");
    add({PassKind::kAppend, 1, n_kv, true, false, has_draft}, "decoding");
    // Logits of several rows at once: probes.
    add(shape_of(PassKind::kAppend, std::min(chunk, DFLASH_MAX_ROWS), n_kv, true, has_draft), "decoding");
    if (shape_.max_rows > 1) {
        const int rows = padded(shape_.max_rows);
        add(shape_of(PassKind::kVerifyTree, rows, n_kv, true, has_draft), "verification");
        if (has_recurrent()) {
            add(shape_of(PassKind::kVerifyChain, rows, n_kv, true, has_draft), "verification");
        }
    }
    uint64_t input_bytes = 0;
    for (const auto & [pass, what] : largest) {
        input_bytes = std::max(input_bytes, pass->input_bytes);
    }
    target_inputs_ = InputBlock(compute_, input_bytes, {DFLASH_PART_COMPUTE, "inputs"}, is_plan_);
    for (const auto & [pass, what] : largest) {
        target_inputs_.place(pass->inputs);
        const uint64_t bytes = reserve_graph(target_memory_.get(), pass->graph, compute_, {DFLASH_PART_COMPUTE, what}, is_plan_);
        planned_bytes_ = std::max(planned_bytes_, bytes);
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
    allocate_anew(target_memory_.get(), pass->graph, compute_, {DFLASH_PART_COMPUTE, "computation"}, [this] {
        passes_.clear();
        last_ = nullptr;
    });
    if (shape.has_logits) {
        compute_.freeze(pass->graph); // steps are repeated, chunks of a prompt are not
    }
    pass->last_use = ++clock_;
    return *(passes_[shape] = std::move(pass));
}

void Passes::run(Pass & pass, int n_real, const char * what) {
    target_inputs_.send(compute_, pass.input_bytes);
    last_ = nullptr;
    last_waits_ = compute_.n_waits();
    compute_.start(pass.graph, {DFLASH_PART_COMPUTE, what});
    is_warm_ = compute_.device().is_cpu || ++pass.n_runs > kWarmRuns;
    last_ = &pass;
    last_rows_ = n_real;
    has_argmax_ = false;
}

void Passes::append(const std::vector<int32_t> & tokens, int n_past, bool has_logits, bool has_features) {
    const int n = static_cast<int>(tokens.size());
    const PassShape shape = shape_of(PassKind::kAppend, n, kv_bucket(n_past + n), has_logits, has_features);
    append_rows(tokens, n_past, shape, 0);
    if (shape.keeps_features) {
        drafting_->write_kept(n_past, n);
    }
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
    for (int i = 0; pass.kept_slots && i < n; ++i) {
        target_inputs_.data<int64_t>(pass.kept_slots)[i] = kept_row + i;
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
    const int n = padded(tree.n_rows());
    const int n_kv = kv_bucket(n_past + tree.n_rows());
    const PassKind kind = is_chain_pass(tree) ? PassKind::kVerifyChain : PassKind::kVerifyTree;
    Pass & pass = target_pass(shape_of(kind, n, n_kv, true, has_features));
    target_inputs_.begin(compute_);
    for (int i = 0; i < n; ++i) {
        const bool is_real = i < tree.n_rows();
        const size_t row = is_real ? static_cast<size_t>(i) : 0; // padding looks like the root, in a slot that nobody sees
        target_inputs_.data<int32_t>(pass.tokens)[i] = tree.tokens[row];
        target_inputs_.data<int32_t>(pass.positions)[i] = n_past + tree.depths[row];
        target_inputs_.data<int64_t>(pass.slots)[i] = is_real ? n_past + i : timeline_.kv.n_slots() - 1;
    }
    for (int i = 0; pass.kept_slots && i < n; ++i) {
        target_inputs_.data<int64_t>(pass.kept_slots)[i] = i;
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
    drafting_->write_kept(first, n);
}

void Passes::commit(const std::vector<int32_t> & rows, int n_past) {
    commits_->start(rows, n_past);
    if (last_ && last_->is_verify() && last_->shape.keeps_features) {
        drafting_->write_rows(rows, n_past);
    }
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
    return drafting_->draft_block(root, n_past, block_size, k, hidden);
}

RecurrentState & Passes::recurrent() {
    compute_.wait();
    return timeline_.recurrent;
}

const KvCache & Passes::resting_cache(bool is_draft) {
    compute_.wait();
    if (!is_draft) {
        return timeline_.kv;
    }
    if (!drafting_) {
        return no_cache_;
    }
    drafting_->wait();
    return drafting_->cache();
}

void Passes::clear() {
    compute_.wait();
    timeline_.kv.clear();
    timeline_.recurrent.clear();
    if (drafting_) {
        drafting_->clear();
    }
    last_ = nullptr;
}

void Passes::fill_memory(dflash_memory & out) const {
    out.context_tokens = shape_.context_tokens;
    out.target_weights_bytes = target_.weights().device_bytes();
    out.kv_cache_bytes = timeline_.kv.bytes();
    out.recurrent_bytes = timeline_.recurrent.bytes();
    out.compute_bytes = pending_.bytes() + (commits_ ? commits_->bytes() : 0) + target_inputs_.bytes() +
                        context_bytes(constants_ctx_.get(), compute_.buffer_type()) +
                        (is_plan_ ? planned_bytes_ : ggml_gallocr_get_buffer_size(target_memory_.get(), 0));
    if (drafting_) {
        drafting_->fill_memory(out);
    }
}

} // namespace dflash
