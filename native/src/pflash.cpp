// Scoring; see pflash.h.
#include "pflash.h"

#include <algorithm>
#include <cmath>

#include "tables.h"

namespace dflash {

namespace {

constexpr int kWindow = 960;       // text tokens read together
constexpr int kOverlap = 64;       // tokens of the window before, read again: the first rows of a window see too little
constexpr int kMostRows = 512;     // per pass, so that a cancel comes through soon
constexpr int kMostQuestion = 512; // tokens
constexpr int kReadRows = 16;      // of the question, read out together: bounds the memory
constexpr float kNoise = 3e-3f;    // probabilities far below it differ by nothing that matters (rating.py has it too)
constexpr int kMostText = 1 << 22;
constexpr size_t kGraphNodes = 16384;

ggml_context_ptr new_context(size_t n_tensors, bool has_graph) {
    ggml_init_params params = {};
    params.mem_size = ggml_tensor_overhead() * n_tensors + (has_graph ? ggml_graph_overhead_custom(kGraphNodes, false) : 0);
    params.no_alloc = true;
    ggml_context_ptr ctx(ggml_init(params));
    if (!ctx) {
        throw Error(DFLASH_OUT_OF_MEMORY, "Not enough memory to describe a computation.");
    }
    return ctx;
}

int window_of(const dflash_scorer_params & params) {
    if (params.window_tokens != 0 && (params.window_tokens < kOverlap || params.window_tokens > kMostText)) {
        throw Error(DFLASH_BAD_ARGUMENT, format("window_tokens is %d; from %d on it makes sense.", params.window_tokens, kOverlap));
    }
    return params.window_tokens > 0 ? params.window_tokens : kWindow;
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
      n_rows_(std::max(kMostQuestion, std::min(n_window_ + kOverlap, kMostRows))) {
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
    const int n_slots = kOverlap + n_window_ + kMostQuestion;
    const ggml_type type = kv_ggml_type(DFLASH_KV_AUTO, target.device());
    timeline_.kv = KvCache(compute_, first_shapes(target, end_), type, type, n_slots, "scorer's KV cache", is_plan);
    timeline_.recurrent = RecurrentState(compute_, target.recurrent_shapes(), is_plan);

    const auto n_kept = static_cast<size_t>(end_ - first_);
    kept_ctx_ = new_context(2 * n_kept, false);
    tap_.first = first_;
    for (size_t i = 0; i < n_kept; ++i) {
        const KvShape & shape = target.kv_shapes()[static_cast<size_t>(first_) + i];
        // One slot more: where the keys of rows go that nobody scores.
        tap_.keys.push_back(ggml_new_tensor_2d(kept_ctx_.get(), GGML_TYPE_F16, shape.head_dim_k * shape.n_head_kv, most_text_ + 1));
        tap_.queries.push_back(ggml_new_tensor_2d(kept_ctx_.get(), GGML_TYPE_F32, shape.head_dim_k * target.n_head(), kMostQuestion));
    }
    kept_bytes_ = context_bytes(kept_ctx_.get(), compute_.buffer_type());
    kept_ = is_plan ? pretend_allocated(kept_ctx_.get(), compute_.buffer_type()) : allocate_cleared(kept_ctx_.get(), compute_.buffer_type(), "scorer's keys");

    pass_memory_.reset(ggml_gallocr_new(compute_.buffer_type()));
    readout_memory_.reset(ggml_gallocr_new(compute_.buffer_type()));
    if (!pass_memory_ || !readout_memory_) {
        throw Error(DFLASH_OUT_OF_MEMORY, "Not enough memory for the scorer.");
    }
    const std::unique_ptr<Pass> largest = build_pass(n_rows_);
    inputs_ = InputBlock(compute_, largest->input_bytes, is_plan);
    inputs_.place(largest->inputs);
    reserve(pass_memory_.get(), largest->graph, "scoring");
    const Readout readout = build_readout(0, most_text_, kMostQuestion);
    reserve(readout_memory_.get(), readout.graph, "scoring");
}

std::vector<KvShape> Scorer::first_shapes(const Target & target, int n) {
    return {target.kv_shapes().begin(), target.kv_shapes().begin() + n};
}

void Scorer::reserve(ggml_gallocr_t allocator, ggml_cgraph * graph, const char * what) {
    compute_.require_support(graph, what);
    if (is_plan_) {
        size_t bytes = 0;
        ggml_gallocr_reserve_n_size(allocator, graph, nullptr, nullptr, &bytes);
        planned_bytes_ += bytes;
    } else if (!ggml_gallocr_reserve(allocator, graph)) {
        throw Error(DFLASH_OUT_OF_MEMORY, format("Not enough memory on %s for %s %d tokens.", target_.device().name.c_str(), what, most_text_));
    }
}

std::unique_ptr<Pass> Scorer::build_pass(int n_rows) const {
    auto pass = std::make_unique<Pass>();
    pass->shape.n_rows = n_rows;
    pass->shape.n_kv = static_cast<int>(timeline_.kv.n_slots());
    pass->ctx = new_context(kGraphNodes, true);
    pass->tap = &tap_;
    ggml_context * ctx = pass->ctx.get();
    pass->graph = ggml_new_graph_custom(ctx, kGraphNodes, false);
    const auto input = [&](ggml_tensor * tensor, const char * name) {
        ggml_set_name(tensor, name);
        ggml_set_input(tensor);
        pass->inputs.push_back(tensor);
        return tensor;
    };
    pass->tokens = input(ggml_new_tensor_1d(ctx, GGML_TYPE_I32, n_rows), "tokens");
    pass->positions = input(ggml_new_tensor_1d(ctx, GGML_TYPE_I32, n_rows), "positions");
    pass->slots = input(ggml_new_tensor_1d(ctx, GGML_TYPE_I64, n_rows), "slots");
    pass->key_slots = input(ggml_new_tensor_1d(ctx, GGML_TYPE_I64, n_rows), "key_slots");
    pass->mask = input(ggml_new_tensor_2d(ctx, GGML_TYPE_F16, pass->shape.n_kv, n_rows), "mask");
    target_.build(*pass, timeline_);
    pass->input_bytes = InputBlock::bytes_for(compute_, pass->inputs);
    return pass;
}

// out F32 [n_text, 1, n_group] per KV head: the largest probability that a row of the question gives each token.
Scorer::Readout Scorer::build_readout(size_t layer, int n_text, int n_rows) const {
    Readout readout;
    readout.ctx = new_context(kGraphNodes, true);
    ggml_context * ctx = readout.ctx.get();
    readout.graph = ggml_new_graph_custom(ctx, kGraphNodes, false);
    readout.weights = ggml_new_tensor_2d(ctx, GGML_TYPE_F32, 1, n_rows);
    ggml_set_input(readout.weights);
    const KvShape & shape = target_.kv_shapes()[static_cast<size_t>(first_) + layer];
    const ggml_tensor * keys = tap_.keys[layer];
    const ggml_tensor * queries = tap_.queries[layer];
    const int64_t n_group = target_.n_head() / shape.n_head_kv;
    const float scale = 1.0f / std::sqrt(static_cast<float>(shape.head_dim_k));
    const size_t head_bytes = static_cast<size_t>(shape.head_dim_k) * sizeof(float);
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
        ggml_set_output(largest);
        ggml_build_forward_expand(readout.graph, largest);
        readout.out.push_back(largest);
    }
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

// Rows at `position` of their window. The keys of the last n_kept of them are kept from first_key_slot on.
void Scorer::run_rows(const std::vector<int32_t> & tokens, int position, int first_key_slot, int n_kept) {
    const auto n = static_cast<int>(tokens.size());
    const std::unique_ptr<Pass> pass = build_pass(n);
    inputs_.place(pass->inputs);
    if (!ggml_gallocr_alloc_graph(pass_memory_.get(), pass->graph)) {
        throw Error(DFLASH_OUT_OF_MEMORY, format("Not enough memory on %s for scoring.", target_.device().name.c_str()));
    }
    inputs_.begin(compute_);
    std::copy(tokens.begin(), tokens.end(), inputs_.data<int32_t>(pass->tokens));
    for (int i = 0; i < n; ++i) {
        const int kept = i - (n - n_kept);
        inputs_.data<int32_t>(pass->positions)[i] = position + i;
        inputs_.data<int64_t>(pass->slots)[i] = position + i;
        inputs_.data<int64_t>(pass->key_slots)[i] = kept < 0 ? most_text_ : first_key_slot + kept;
    }
    fill_rows_mask({0, pass->shape.n_kv}, n, position, 0, true, inputs_.data<uint16_t>(pass->mask));
    inputs_.send(compute_, pass->input_bytes);
    compute_.start(pass->graph, "scoring");
    compute_.wait();
}

bool Scorer::advance(dflash_progress & out) {
    if (!is_begun_) {
        throw Error(DFLASH_BAD_STATE, "Nothing to score: call dflash_scorer_begin first.");
    }
    const auto n_text = static_cast<int>(text_.size());
    out.n_total = text_.size() + question_.size();
    if (n_done_ < n_text) {
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
    std::vector<float> found;
    size_t n_heads = 0;
    for (size_t layer = 0; layer < tap_.keys.size(); ++layer) {
        const Readout readout = build_readout(layer, n_text, static_cast<int>(question_.size()));
        if (!ggml_gallocr_alloc_graph(readout_memory_.get(), readout.graph)) {
            throw Error(DFLASH_OUT_OF_MEMORY, format("Not enough memory on %s for scoring.", target_.device().name.c_str()));
        }
        ggml_backend_tensor_set(readout.weights, weights_.data(), 0, weights_.size() * sizeof(float));
        compute_.start(readout.graph, "scoring");
        compute_.wait();
        for (const ggml_tensor * out : readout.out) {
            found.resize(static_cast<size_t>(ggml_nelements(out)));
            ggml_backend_tensor_get(out, found.data(), 0, found.size() * sizeof(float));
            for (size_t i = 0; i < found.size(); ++i) {
                masses[i % text_.size()] += std::log(found[i] + kNoise);
            }
            n_heads += found.size() / text_.size();
        }
    }
    if (std::any_of(masses.begin(), masses.end(), [](float mass) { return !std::isfinite(mass); })) {
        throw Error(DFLASH_DEVICE_FAILED, format("The device %s computed scores that are not numbers.", target_.device().name.c_str()));
    }
    for (float & mass : masses) {
        mass = std::max(0.0f, std::exp(mass / static_cast<float>(n_heads)) - kNoise);
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
    out.compute_bytes = inputs_.bytes() + planned_bytes_;
    if (!is_plan_) {
        out.compute_bytes += ggml_gallocr_get_buffer_size(pass_memory_.get(), 0) + ggml_gallocr_get_buffer_size(readout_memory_.get(), 0);
    }
}

} // namespace dflash
