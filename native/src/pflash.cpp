// Scoring; see pflash.h.
#include "pflash.h"

#include <algorithm>
#include <cmath>
#include <functional>

#include "graphs.h"
#include "tables.h"

namespace dflash {

namespace {

constexpr int kWindow = 960;       // text tokens read together
constexpr int kOverlap = 64;       // tokens of the window before, read again: the first rows of a window see too little
constexpr int kMostRows = 512;     // per pass on a CPU, so that a cancel comes through soon; GPUs read whole windows
constexpr int kMostTogether = 16;  // windows per pass
constexpr int kTogether = 4;       // the same where nobody asked: from here on a large GPU gets no faster
constexpr int kMostQuestion = 512; // tokens
constexpr int kReadRows = 16;      // of the question, read out together: bounds the memory
constexpr float kNoise = 3e-3f;    // probabilities far below it differ by nothing that matters (rating.py has it too)
constexpr int kMostText = 1 << 22;
constexpr Purpose kScoring = {DFLASH_PART_SCORER, "scoring"};

int window_of(const dflash_scorer_params & params) {
    if (params.window_tokens != 0 && (params.window_tokens < kOverlap || params.window_tokens > kMostText)) {
        throw Error(DFLASH_BAD_ARGUMENT, format("window_tokens is %d; from %d on it makes sense.", params.window_tokens, kOverlap));
    }
    return params.window_tokens > 0 ? params.window_tokens : kWindow;
}

int together_of(const Target & target, const dflash_scorer_params & params) {
    if (params.windows_together < 0 || params.windows_together > kMostTogether) {
        throw Error(DFLASH_BAD_ARGUMENT, format("windows_together is %d; from 0 to %d are possible.", params.windows_together, kMostTogether));
    }
    if (!target.recurrent_shapes().empty()) {
        return 1; // there is one state
    }
    return params.windows_together > 0 ? params.windows_together : is_large(target.device()) ? kTogether : 1;
}

// Slots of a cache in which each of several windows finds its own: GPU kernels want multiples of 256.
int whole_slots(int n) {
    return (n + 255) / 256 * 256;
}

} // namespace

// Found with needles: heads that find what a question asks for sit between 0.4 and 0.8 of the depth, and what
// later layers do does not matter for them, so they are not run (tests/bench/RESULTS.md, "PFlash").
Scorer::Scorer(const Target & target, const dflash_scorer_params & params, bool is_plan)
    : target_(target),
      is_plan_(is_plan),
      compute_(target.device(), target.n_threads()),
      most_text_(params.text_tokens),
      n_window_(std::min(window_of(params), std::max(kOverlap, target.context_tokens() - kOverlap - kMostQuestion))),
      n_together_(together_of(target, params)),
      n_rows_(std::max(kMostQuestion, target.device().is_cpu ? std::min(n_window_ + kOverlap, kMostRows) : n_window_ + kOverlap)),
      n_slots_(whole_slots(kOverlap + n_window_ + kMostQuestion)) {
    if (most_text_ < 1 || most_text_ > kMostText) {
        throw Error(DFLASH_BAD_ARGUMENT, format("text_tokens is %d; from 1 to %d are possible.", most_text_, kMostText));
    }
    const auto n_layers = static_cast<int>(target.kv_shapes().size());
    if (n_layers == 0) {
        throw Error(DFLASH_UNSUPPORTED, target.file().label() + ": a model without attention cannot score.");
    }
    first_ = params.end_layer > 0 ? params.first_layer : n_layers * 2 / 5;
    end_ = params.end_layer > 0 ? params.end_layer : std::max(first_ + 1, n_layers * 4 / 5);
    if (first_ < 0 || first_ >= end_ || end_ > n_layers) {
        throw Error(DFLASH_BAD_ARGUMENT, format("Attention layers %d to %d: the model has %d.", first_, end_, n_layers));
    }
    learn_products();
    const int n_slots = std::max(n_slots_, n_together_ > 1 ? n_together_ * whole_slots(kOverlap + n_window_) : 0);
    const ggml_type type = kv_ggml_type(DFLASH_KV_AUTO, target.device());
    timeline_.kv = KvCache(compute_, first_shapes(target, end_), type, type, n_slots, {DFLASH_PART_SCORER, "scorer's KV cache"}, is_plan);
    timeline_.recurrent = RecurrentState(compute_, target.recurrent_shapes(), {DFLASH_PART_SCORER, "scorer's recurrent state"}, is_plan);

    const auto n_kept = static_cast<size_t>(end_ - first_);
    kept_ctx_ = tensor_context(2 * n_kept + 1);
    tap_.first = first_;
    for (size_t i = 0; i < n_kept; ++i) {
        const KvShape & shape = target.kv_shapes()[static_cast<size_t>(first_) + i];
        // One slot more: where the keys of rows go that nobody scores.
        tap_.keys.push_back(ggml_new_tensor_2d(kept_ctx_.get(), GGML_TYPE_F16, shape.head_dim_k * shape.n_head_kv, most_text_ + 1));
        tap_.queries.push_back(ggml_new_tensor_2d(kept_ctx_.get(), GGML_TYPE_F32, shape.head_dim_k * target.n_head(), kMostQuestion));
    }
    if (n_together_ > 1) { // one per window, though all are alike: ggml's CUDA kernel looks for the mask of each
        const int n = kOverlap + n_window_;
        windows_mask_ = ggml_new_tensor_4d(kept_ctx_.get(), GGML_TYPE_F16, whole_slots(n), n, 1, n_together_);
    }
    kept_bytes_ = context_bytes(kept_ctx_.get(), compute_.buffer_type());
    kept_ = allocate(kept_ctx_.get(), compute_, {DFLASH_PART_SCORER, "scorer's keys"}, is_plan);
    fill_windows_mask();

    reserve();
}

// Memory runs out here or never: every kind of pass at its largest.
void Scorer::reserve() {
    pass_memory_ = graph_allocator(compute_);
    readout_memory_ = graph_allocator(compute_);
    const std::unique_ptr<Pass> largest = build_pass(n_rows_, n_slots_, 1);
    std::unique_ptr<Pass> windows;
    if (n_together_ > 1) {
        windows = build_pass((kOverlap + n_window_) * n_together_, whole_slots(kOverlap + n_window_), n_together_);
    }
    inputs_ = InputBlock(compute_, std::max(largest->input_bytes, windows ? windows->input_bytes : 0), kScoring, is_plan_);
    inputs_.place(largest->inputs);
    uint64_t pass_bytes = reserve_graph(pass_memory_.get(), largest->graph, compute_, kScoring, is_plan_);
    if (windows) {
        inputs_.place(windows->inputs);
        pass_bytes = std::max(pass_bytes, reserve_graph(pass_memory_.get(), windows->graph, compute_, kScoring, is_plan_));
    }
    const Readout readout = build_readout(0, most_text_, kMostQuestion);
    graph_bytes_ = pass_bytes + reserve_graph(readout_memory_.get(), readout.graph, compute_, kScoring, is_plan_);
}

void Scorer::fill_windows_mask() {
    if (is_plan_ || !windows_mask_) {
        return;
    }
    const int n = kOverlap + n_window_;
    const int n_slots = whole_slots(n);
    std::vector<uint16_t> mask(static_cast<size_t>(n_slots) * static_cast<size_t>(n));
    fill_rows_mask({0, n_slots}, n, 0, 0, true, mask.data());
    for (int w = 0; w < n_together_; ++w) {
        ggml_backend_tensor_set(windows_mask_, mask.data(), static_cast<size_t>(w) * windows_mask_->nb[3], mask.size() * sizeof(uint16_t));
    }
}

void Scorer::learn_products() {
    Products & products = target_.weights().products();
    if (is_plan_) {
        products.assume(compute_, n_rows_ * n_together_);
    } else {
        products.measure(compute_, n_rows_ * n_together_);
    }
}

std::vector<KvShape> Scorer::first_shapes(const Target & target, int n) {
    return {target.kv_shapes().begin(), target.kv_shapes().begin() + n};
}

std::unique_ptr<Pass> Scorer::build_pass(int n_rows, int n_kv, int n_streams) const {
    auto pass = std::make_unique<Pass>();
    pass->shape.n_rows = n_rows;
    pass->shape.n_kv = n_kv;
    pass->n_streams = n_streams;
    const size_t n_nodes = graph_nodes(target_.n_layers());
    pass->ctx = new_graph_context(n_nodes);
    pass->tap = &tap_;
    ggml_context * ctx = pass->ctx.get();
    pass->graph = new_graph(ctx, n_nodes);
    pass->tokens = add_input(ctx, pass->inputs, GGML_TYPE_I32, {n_rows}, "tokens");
    pass->positions = add_input(ctx, pass->inputs, GGML_TYPE_I32, {n_rows}, "positions");
    pass->slots = add_input(ctx, pass->inputs, GGML_TYPE_I64, {n_rows}, "slots");
    pass->key_slots = add_input(ctx, pass->inputs, GGML_TYPE_I64, {n_rows}, "key_slots");
    pass->mask = n_streams > 1 ? windows_mask_ : add_input(ctx, pass->inputs, GGML_TYPE_F16, {n_kv, n_rows}, "mask");
    target_.build(*pass, timeline_);
    pass->input_bytes = InputBlock::bytes_for(compute_, pass->inputs);
    return pass;
}

// out F32 [n_text]: the sum over this layer's heads of the logarithm of the largest probability that a row of the question
// gives each token.
Scorer::Readout Scorer::build_readout(size_t layer, int n_text, int n_rows) const {
    Readout readout;
    const KvShape & shape = target_.kv_shapes()[static_cast<size_t>(first_) + layer];
    const auto n_heads = static_cast<size_t>(target_.n_head());
    const size_t n_parts = static_cast<size_t>(n_rows + kReadRows - 1) / kReadRows;
    const size_t n_nodes = 64 + static_cast<size_t>(shape.n_head_kv) * (8 + 12 * n_parts) + 4 * n_heads; // views among them
    readout.ctx = new_graph_context(n_nodes);
    ggml_context * ctx = readout.ctx.get();
    readout.graph = new_graph(ctx, n_nodes);
    readout.weights = ggml_new_tensor_2d(ctx, GGML_TYPE_F32, 1, n_rows);
    ggml_set_input(readout.weights);
    const ggml_tensor * keys = tap_.keys[layer];
    const ggml_tensor * queries = tap_.queries[layer];
    const int64_t n_group = target_.n_head() / shape.n_head_kv;
    const float scale = 1.0f / std::sqrt(static_cast<float>(shape.head_dim_k));
    const size_t head_bytes = static_cast<size_t>(shape.head_dim_k) * sizeof(float);
    const auto n_bytes = static_cast<size_t>(n_text) * sizeof(float);
    for (int64_t h = 0; h < shape.n_head_kv; ++h) {
        ggml_tensor * k =
            ggml_view_2d(ctx, tap_.keys[layer], shape.head_dim_k, n_text, keys->nb[1], static_cast<size_t>(h) * ggml_row_size(keys->type, shape.head_dim_k));
        ggml_tensor * largest = nullptr;
        for (int first = 0; first < n_rows; first += kReadRows) {
            const int n = std::min(kReadRows, n_rows - first);
            ggml_tensor * q = ggml_view_3d(ctx, tap_.queries[layer], shape.head_dim_k, n, n_group, queries->nb[1], head_bytes,
                                           static_cast<size_t>(first) * queries->nb[1] + static_cast<size_t>(h * n_group) * head_bytes);
            ggml_tensor * weights = ggml_view_2d(ctx, readout.weights, 1, n, readout.weights->nb[1], static_cast<size_t>(first) * readout.weights->nb[1]);
            ggml_tensor * found = ggml_soft_max_ext(ctx, ggml_mul_mat(ctx, k, q), nullptr, scale, 0.0f); // [n_text, n, n_group]
            found = ggml_pool_2d(ctx, ggml_mul(ctx, found, weights), GGML_OP_POOL_MAX, 1, n, 1, n, 0, 0);
            largest = largest ? ggml_add(ctx, largest, ggml_relu(ctx, ggml_sub(ctx, found, largest))) : found; // the larger one
        }
        largest = ggml_log(ctx, ggml_scale_bias(ctx, largest, 1.0f, kNoise)); // [n_text, 1, n_group]
        for (int64_t g = 0; g < n_group; ++g) {
            ggml_tensor * head = ggml_view_1d(ctx, largest, n_text, static_cast<size_t>(g) * n_bytes);
            readout.out = readout.out ? ggml_add(ctx, readout.out, head) : head;
        }
    }
    readout.out = ggml_cont(ctx, readout.out);
    ggml_set_output(readout.out);
    ggml_build_forward_expand(readout.graph, readout.out);
    return readout;
}

void Scorer::begin(const std::vector<int32_t> & text, const std::vector<int32_t> & question, const std::vector<float> & weights) {
    if (static_cast<int64_t>(text.size()) > most_text_) {
        throw Error(DFLASH_BAD_ARGUMENT, format("The text has %zu tokens; this scorer was opened for %d.", text.size(), most_text_));
    }
    if (static_cast<int64_t>(question.size()) > kMostQuestion) {
        throw Error(DFLASH_BAD_ARGUMENT, format("The question has %zu tokens; at most %d can ask at once.", question.size(), kMostQuestion));
    }
    for (const std::vector<int32_t> * tokens : {&text, &question}) {
        for (const int32_t token : *tokens) {
            if (token < 0 || token >= target_.n_vocab()) {
                throw Error(DFLASH_BAD_ARGUMENT, format("%d is not a token of the scorer.", token));
            }
        }
    }
    float sum = 0;
    for (const float weight : weights) {
        if (!(weight >= 0) || !std::isfinite(weight)) {
            throw Error(DFLASH_BAD_ARGUMENT, "A weight of the question is negative or not a number.");
        }
        sum += weight;
    }
    if (!weights.empty() && (weights.size() != question.size() || !(sum > 0))) {
        throw Error(DFLASH_BAD_ARGUMENT, "The question's weights are of another number than its tokens, or all zero.");
    }
    // Windows that lie in the shared start of both texts hold; the question wants the last one read before it, which it is
    // when the text is the same.
    const auto n_text = static_cast<int>(text.size());
    if (n_done_ < n_text || text != text_) {
        const auto n_same = std::min(static_cast<int64_t>(n_text), static_cast<int64_t>(n_done_));
        const auto shared = std::mismatch(text.begin(), text.begin() + n_same, text_.begin()).first - text.begin();
        n_done_ = static_cast<int>(shared) / n_window_ * n_window_;
        if (n_done_ == n_text) {
            n_done_ = std::max(0, n_done_ - n_window_);
        }
        position_ = 0;
    }
    text_ = text;
    question_ = question;
    weights_.assign(question.size(), 1.0f);
    const float largest = weights.empty() ? 1.0f : *std::max_element(weights.begin(), weights.end());
    for (size_t i = 0; i < weights.size(); ++i) {
        weights_[i] = weights[i] / largest;
    }
    masses_.clear();
    compute_.is_cancelled.store(false, std::memory_order_relaxed);
    is_begun_ = true;
}

void Scorer::run(const Pass & pass) {
    inputs_.send(compute_, pass.input_bytes);
    compute_.start(pass.graph, kScoring);
    compute_.wait();
}

void Scorer::begin_pass(const Pass & pass, const std::vector<int32_t> & tokens) {
    inputs_.place(pass.inputs);
    allocate_graph(pass_memory_.get(), pass.graph, compute_, kScoring);
    inputs_.begin(compute_);
    std::copy(tokens.begin(), tokens.end(), inputs_.data<int32_t>(pass.tokens));
}

// Rows at `position` of their window. The keys of the last n_kept of them are kept from first_key_slot on.
void Scorer::run_rows(const std::vector<int32_t> & tokens, int position, int first_key_slot, int n_kept) {
    const auto n = static_cast<int>(tokens.size());
    const std::unique_ptr<Pass> pass = build_pass(n, n_slots_, 1);
    begin_pass(*pass, tokens);
    for (int i = 0; i < n; ++i) {
        const int kept = i - (n - n_kept);
        inputs_.data<int32_t>(pass->positions)[i] = position + i;
        inputs_.data<int64_t>(pass->slots)[i] = position + i;
        inputs_.data<int64_t>(pass->key_slots)[i] = kept < 0 ? most_text_ : first_key_slot + kept;
    }
    fill_rows_mask({0, n_slots_}, n, position, 0, true, inputs_.data<uint16_t>(pass->mask));
    run(*pass);
}

// The next n_together_ windows whole, each from position 0 with its overlap.
void Scorer::run_windows() {
    const int n = kOverlap + n_window_; // rows of each
    const int n_slots = whole_slots(n);
    std::vector<int32_t> tokens;
    for (int w = 0; w < n_together_; ++w) {
        const auto begin = text_.begin() + n_done_ + w * n_window_;
        tokens.insert(tokens.end(), begin - kOverlap, begin + n_window_);
    }
    const std::unique_ptr<Pass> pass = build_pass(n * n_together_, n_slots, n_together_);
    begin_pass(*pass, tokens);
    for (int w = 0; w < n_together_; ++w) {
        for (int i = 0; i < n; ++i) {
            inputs_.data<int32_t>(pass->positions)[w * n + i] = i;
            inputs_.data<int64_t>(pass->slots)[w * n + i] = w * n_slots + i;
            inputs_.data<int64_t>(pass->key_slots)[w * n + i] = i < kOverlap ? most_text_ : n_done_ + w * n_window_ + i - kOverlap;
        }
    }
    run(*pass);
}

bool Scorer::advance(dflash_progress & out) {
    if (!is_begun_) {
        throw Error(DFLASH_BAD_STATE, "Nothing to score: call dflash_scorer_begin first.");
    }
    const auto n_text = static_cast<int>(text_.size());
    out.n_total = text_.size() + question_.size();
    if (n_done_ < n_text) {
        // The last window is read alone: the question comes behind it.
        if (n_together_ > 1 && n_done_ > 0 && n_done_ % n_window_ == 0 && n_text - n_done_ > n_together_ * n_window_) {
            run_windows();
            n_done_ += n_together_ * n_window_;
            out.n_done = static_cast<uint64_t>(n_done_);
            return false;
        }
        const int n_before = n_done_ % n_window_; // of this window
        int n_again = 0;
        if (n_before == 0) {
            n_again = std::min(kOverlap, n_done_);
            position_ = 0;
            timeline_.recurrent.clear();
        }
        before_question_.clear();
        const int n_new = std::min({n_rows_ - n_again, n_window_ - n_before, n_text - n_done_});
        const auto begin = text_.begin() + n_done_;
        run_rows({begin - n_again, begin + n_new}, position_, n_done_, n_new);
        position_ += n_again + n_new;
        n_done_ += n_new;
    } else if (masses_.empty()) {
        run_question();
        read_out();
    }
    out.n_done = static_cast<uint64_t>(n_done_) + (masses_.empty() ? 0 : question_.size());
    return !masses_.empty();
}

// Its rows leave no trace in the timeline: their slots are written anew, the recurrent state is put back.
void Scorer::run_question() {
    RecurrentState & recurrent = timeline_.recurrent;
    if (!recurrent.is_empty() && before_question_.empty()) {
        before_question_.resize(recurrent.saved_bytes());
        recurrent.save(before_question_.data());
    } else if (!recurrent.is_empty()) {
        recurrent.restore(before_question_.data());
    }
    run_rows(question_, position_, 0, 0);
}

// Layer by layer, so that memory holds one head's probabilities. The mean is taken over logarithms: a few heads find what
// is asked for, and in a mean over probabilities those that look at everything would drown them.
void Scorer::read_out() {
    const auto n_text = static_cast<int>(text_.size());
    std::vector<float> masses(text_.size(), 0.0f);
    std::vector<float> found(text_.size());
    for (size_t layer = 0; layer < tap_.keys.size(); ++layer) {
        const Readout readout = build_readout(layer, n_text, static_cast<int>(question_.size()));
        allocate_graph(readout_memory_.get(), readout.graph, compute_, kScoring);
        ggml_backend_tensor_set(readout.weights, weights_.data(), 0, weights_.size() * sizeof(float));
        compute_.start(readout.graph, kScoring);
        compute_.wait();
        ggml_backend_tensor_get(readout.out, found.data(), 0, found.size() * sizeof(float));
        std::transform(masses.begin(), masses.end(), found.begin(), masses.begin(), std::plus<>());
    }
    const auto n_heads = static_cast<float>(tap_.keys.size()) * static_cast<float>(target_.n_head());
    if (std::any_of(masses.begin(), masses.end(), [](float mass) { return !std::isfinite(mass); })) {
        throw Error(DFLASH_DEVICE_FAILED, format("The device %s computed scores that are not numbers.", target_.device().name.c_str()));
    }
    for (float & mass : masses) {
        mass = std::max(0.0f, std::exp(mass / n_heads) - kNoise);
    }
    masses_ = std::move(masses);
}

const std::vector<float> & Scorer::masses() const {
    if (masses_.empty()) {
        throw Error(DFLASH_BAD_STATE, "The scores are not there yet: call dflash_scorer_run until it returns DFLASH_OK.");
    }
    return masses_;
}

void Scorer::fill_memory(dflash_memory & out) const {
    out.context_tokens = most_text_;
    out.target_weights_bytes = target_.weights().device_bytes();
    out.kv_cache_bytes = timeline_.kv.bytes() + kept_bytes_;
    out.recurrent_bytes = timeline_.recurrent.bytes();
    out.compute_bytes = inputs_.bytes() + graph_bytes_;
}

} // namespace dflash
