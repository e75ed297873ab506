// Scoring; see pflash.h.
#include "pflash.h"

#include <algorithm>
#include <cmath>

#include "tables.h"

namespace dflash {

namespace {

constexpr int kWindow = 960;       // text tokens read together
constexpr int kOverlap = 64;       // tokens of the window before, read again: the first rows of a window see too little
constexpr int kChunk = 512;        // rows per pass: two fill a window
constexpr int kMostQuestion = 512; // tokens
constexpr int kReadRows = 16;      // of the question, read out together: bounds the memory
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

// Found with needles in prose: heads that find what a question asks for sit between 0.4 and 0.8 of the depth, and what
// later layers do does not matter for them, so they are not run (tests/bench/RESULTS.md, "PFlash").
Scorer::Scorer(const Target & target, const dflash_scorer_params & params, bool is_plan)
    : target_(target),
      is_plan_(is_plan),
      compute_(target.device(), target.n_threads()),
      most_text_(params.text_tokens),
      n_window_(std::min(window_of(params), std::max(kOverlap, target.context_tokens() - kOverlap - kMostQuestion))) {
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
    const std::unique_ptr<Pass> largest = build_pass(kChunk);
    inputs_ = InputBlock(compute_, largest->input_bytes, is_plan);
    inputs_.place(largest->inputs);
    reserve(pass_memory_.get(), largest->graph, "scoring");
    ggml_cgraph * graph = nullptr;
    ggml_tensor * out = nullptr;
    const ggml_context_ptr ctx = build_readout(most_text_, kReadRows, 0, graph, out);
    reserve(readout_memory_.get(), graph, "scoring");
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

// out F32 [n_text, n_rows]: for rows first_row.. of the question, the largest probability of any head for each token.
ggml_context_ptr Scorer::build_readout(int n_text, int n_rows, int first_row, ggml_cgraph *& graph, ggml_tensor *& out) const {
    ggml_context_ptr owner = new_context(kGraphNodes, true);
    ggml_context * ctx = owner.get();
    graph = ggml_new_graph_custom(ctx, kGraphNodes, false);
    out = nullptr;
    for (size_t i = 0; i < tap_.keys.size(); ++i) {
        const KvShape & shape = target_.kv_shapes()[static_cast<size_t>(first_) + i];
        const int64_t n_group = target_.n_head() / shape.n_head_kv;
        const float scale = 1.0f / std::sqrt(static_cast<float>(shape.head_dim_k));
        const auto head = static_cast<size_t>(shape.head_dim_k);
        for (int64_t h = 0; h < shape.n_head_kv; ++h) {
            const ggml_tensor * keys = tap_.keys[i];
            const ggml_tensor * queries = tap_.queries[i];
            ggml_tensor * k =
                ggml_view_2d(ctx, tap_.keys[i], shape.head_dim_k, n_text, keys->nb[1], static_cast<size_t>(h) * ggml_row_size(keys->type, shape.head_dim_k));
            ggml_tensor * q = ggml_view_3d(ctx, tap_.queries[i], shape.head_dim_k, n_rows, n_group, queries->nb[1], head * sizeof(float),
                                           static_cast<size_t>(first_row) * queries->nb[1] + static_cast<size_t>(h * n_group) * head * sizeof(float));
            ggml_tensor * probabilities = ggml_soft_max_ext(ctx, ggml_mul_mat(ctx, k, q), nullptr, scale, 0.0f); // [n_text, n_rows, n_group]
            for (int64_t g = 0; g < n_group; ++g) {
                ggml_tensor * one = ggml_view_2d(ctx, probabilities, n_text, n_rows, probabilities->nb[1], static_cast<size_t>(g) * probabilities->nb[2]);
                out = out ? ggml_add(ctx, out, ggml_relu(ctx, ggml_sub(ctx, one, out))) : ggml_cont(ctx, one); // the larger one
            }
        }
    }
    ggml_set_output(out);
    ggml_build_forward_expand(graph, out);
    return owner;
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
    // Windows that lie in the shared start of both texts hold; the question wants the last one read before it.
    const auto shared =
        std::mismatch(text.begin(), text.begin() + std::min(static_cast<int64_t>(text.size()), static_cast<int64_t>(n_done_)), text_.begin()).first -
        text.begin();
    const auto n_text = static_cast<int>(text.size());
    n_done_ = static_cast<int>(shared) / n_window_ * n_window_;
    if (n_done_ == n_text) {
        n_done_ -= n_window_;
    }
    text_ = text;
    question_ = question;
    weights_.assign(question.size(), 1.0f / static_cast<float>(question.size()));
    for (size_t i = 0; i < weights.size(); ++i) {
        weights_[i] = weights[i] / sum;
    }
    position_ = 0;
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
        const int n_new = std::min({kChunk - n_again, n_window_ - n_before, n_text - n_done_});
        const auto begin = text_.begin() + n_done_;
        run_rows({begin - n_again, begin + n_new}, position_, n_done_, n_new);
        position_ += n_again + n_new;
        n_done_ += n_new;
    } else if (masses_.empty()) {
        run_rows(question_, position_, 0, 0);
        read_out();
    }
    out.n_done = static_cast<uint64_t>(n_done_) + (masses_.empty() ? 0 : question_.size());
    return !masses_.empty();
}

void Scorer::read_out() {
    const auto n_text = static_cast<int>(text_.size());
    const auto n_question = static_cast<int>(question_.size());
    std::vector<float> masses(text_.size(), 0.0f);
    std::vector<float> rows;
    for (int first = 0; first < n_question; first += kReadRows) {
        const int n = std::min(kReadRows, n_question - first);
        ggml_cgraph * graph = nullptr;
        ggml_tensor * out = nullptr;
        const ggml_context_ptr ctx = build_readout(n_text, n, first, graph, out);
        if (!ggml_gallocr_alloc_graph(readout_memory_.get(), graph)) {
            throw Error(DFLASH_OUT_OF_MEMORY, format("Not enough memory on %s for scoring.", target_.device().name.c_str()));
        }
        compute_.start(graph, "scoring");
        compute_.wait();
        rows.resize(static_cast<size_t>(n) * text_.size());
        ggml_backend_tensor_get(out, rows.data(), 0, rows.size() * sizeof(float));
        for (size_t r = 0; r < static_cast<size_t>(n); ++r) {
            const float weight = weights_[static_cast<size_t>(first) + r];
            for (size_t t = 0; t < text_.size(); ++t) {
                masses[t] += weight * rows[r * text_.size() + t];
            }
        }
    }
    if (std::any_of(masses.begin(), masses.end(), [](float mass) { return !std::isfinite(mass); })) {
        throw Error(DFLASH_DEVICE_FAILED, format("The device %s computed scores that are not numbers.", target_.device().name.c_str()));
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
