// Timing of products; see products.h.
#include "products.h"

#include <algorithm>
#include <numeric>

#include "clock.h"
#include "ggml-alloc.h"
#include "log.h"

namespace dflash {

namespace {

constexpr int kFewRows = 8;             // at most so many are computed by kernels that read a weight once for all of them
constexpr size_t kSamples = 16;         // products per timing: of different weights, or caches would make them fast
constexpr uint64_t kTimedBytes = 256u << 20; // weights read per timing: enough for a large device, quick for a small one
constexpr uint64_t kMostFolded = 16u << 20;  // larger weights are never worth reading twice
constexpr uint64_t kMostUnpacked = 1u << 30; // bytes of a weight in F32
constexpr int kLeastMany = 1024;        // rows of a prefill that may be worth it
constexpr int kRuns = 4;                // GPUs try a graph, capture it, and only then are as fast as they get
constexpr double kClear = 0.9;          // another form must be so much faster
constexpr double kLeastShare = 0.04;    // of all bytes: what rarer kinds take is not worth measuring
constexpr int kRunsOfMany = 3;          // of a prefill's rows: long, and no graph is captured for them
constexpr double kMeasureUs = 2.0e6;    // at most about this long; what is left then is computed the plain way

// The widest part that rows are folded into: a divisor of n that the kernels for few rows take. 0: none.
int64_t fold_width(int64_t n) {
    for (int64_t width = kFewRows; width >= kFewRows / 2; --width) {
        if (n % width == 0) {
            return width;
        }
    }
    return 0;
}

} // namespace

void Products::add(const ggml_tensor * weight) {
    if (!ggml_is_quantized(weight->type)) {
        return; // one kernel for all row counts, or as good as
    }
    for (Kind & kind : kinds_) {
        if (kind.type == weight->type && kind.n_in == weight->ne[0] && kind.n_out == weight->ne[1]) {
            ++kind.n_weights;
            if (kind.samples.size() < kSamples) {
                kind.samples.push_back(weight);
            }
            return;
        }
    }
    Kind kind;
    kind.type = weight->type;
    kind.n_in = weight->ne[0];
    kind.n_out = weight->ne[1];
    kind.n_weights = 1;
    kind.samples = {weight};
    kinds_.push_back(std::move(kind));
}

const Products::Kind * Products::kind_of(const ggml_tensor * weight) const {
    for (const Kind & kind : kinds_) {
        if (kind.type == weight->type && kind.n_in == weight->ne[0] && kind.n_out == weight->ne[1]) {
            return &kind;
        }
    }
    return nullptr;
}

ggml_tensor * Products::build(ggml_context * ctx, ggml_tensor * weight, ggml_tensor * x, Form form) const {
    if (form == Form::kUnpacked) {
        ggml_tensor * all = ggml_view_1d(ctx, row_numbers_, weight->ne[1], 0);
        return ggml_mul_mat(ctx, ggml_get_rows(ctx, weight, all), x);
    }
    const int64_t n = x->ne[1];
    const int64_t width = form == Form::kFolded && ggml_is_contiguous(x) ? fold_width(n) : 0;
    if (width == 0) {
        return ggml_mul_mat(ctx, weight, x);
    }
    ggml_tensor * folded = ggml_mul_mat(ctx, weight, ggml_reshape_3d(ctx, x, x->ne[0], width, n / width));
    return ggml_reshape_2d(ctx, folded, weight->ne[1], n);
}

ggml_tensor * Products::multiply(ggml_context * ctx, ggml_tensor * weight, ggml_tensor * x) const {
    const Kind * kind = kind_of(weight);
    const int64_t n = x->ne[1];
    Form form = Form::kDirect;
    if (kind && n > kFewRows && n <= kind->most_folded) {
        form = Form::kFolded;
    } else if (kind && n >= kind->least_unpacked) {
        form = Form::kUnpacked;
    }
    return build(ctx, weight, x, form);
}

// Microseconds of one product, or a negative number where the device has no room or no kernel for it.
double Products::time(Compute & compute, const Kind & kind, int n_rows, Form form, int n_runs) const {
    const uint64_t bytes = ggml_nbytes(kind.samples[0]);
    const size_t n = static_cast<size_t>(std::clamp<uint64_t>(kTimedBytes / bytes, 1, kSamples));
    const ContextPtr ctx = tensor_context(8 * n + 8, 8 * n + 8);
    ggml_cgraph * graph = ggml_new_graph_custom(ctx.get(), 8 * n + 8, false);
    ggml_tensor * x = ggml_new_tensor_2d(ctx.get(), GGML_TYPE_F32, kind.n_in, n_rows);
    ggml_set_input(x);
    for (size_t i = 0; i < n; ++i) {
        // Graphs take weights that are not const; nothing writes to them.
        auto * weight = const_cast<ggml_tensor *>(kind.samples[i % kind.samples.size()]);
        ggml_build_forward_expand(graph, build(ctx.get(), weight, x, form));
    }
    for (int i = 0; i < ggml_graph_n_nodes(graph); ++i) {
        if (!ggml_backend_dev_supports_op(compute.device().handle, ggml_graph_node(graph, i))) {
            return -1;
        }
    }
    const ggml_gallocr_ptr memory(ggml_gallocr_new(compute.buffer_type()));
    if (!memory || !ggml_gallocr_alloc_graph(memory.get(), graph)) {
        return -1;
    }
    const std::vector<float> ones(static_cast<size_t>(ggml_nelements(x)), 1.0f);
    ggml_backend_tensor_set(x, ones.data(), 0, ggml_nbytes(x));
    double best = -1;
    for (int i = 0; i < n_runs; ++i) {
        const int64_t start = now_us();
        compute.start(graph, {DFLASH_PART_COMPUTE, "measurement"});
        compute.wait();
        const double us = us_since(start);
        best = best < 0 ? us : std::min(best, us);
    }
    return best / static_cast<double>(n);
}

void Products::add_row_numbers(const Compute & compute, bool is_plan) {
    int64_t most = 0;
    for (const Kind & kind : kinds_) {
        most = std::max(most, kind.n_out);
    }
    if (most == 0 || most > INT32_MAX) {
        return;
    }
    ctx_ = tensor_context(1);
    ggml_tensor * numbers = ggml_new_tensor_1d(ctx_.get(), GGML_TYPE_I32, most);
    buffer_ = is_plan ? pretend_allocated(ctx_.get(), compute.device())
                      : ggml_backend_buffer_ptr(ggml_backend_alloc_ctx_tensors_from_buft(ctx_.get(), compute.buffer_type()));
    if (!buffer_) {
        return; // then weights stay as they are
    }
    if (!is_plan) {
        std::vector<int32_t> values(static_cast<size_t>(most));
        std::iota(values.begin(), values.end(), 0);
        ggml_backend_tensor_set(numbers, values.data(), 0, ggml_nbytes(numbers));
    }
    row_numbers_ = numbers;
}

// Rows that are computed several at a time, while that is faster.
void Products::measure_folding(Compute & compute, Kind & kind) const {
    for (const int n_rows : {16, 32, DFLASH_MAX_ROWS}) {
        const double us = time(compute, kind, n_rows, Form::kDirect, kRuns);
        const double folded_us = us > 0 ? time(compute, kind, n_rows, Form::kFolded, kRuns) : 0;
        if (folded_us <= 0 || folded_us > kClear * us) {
            return;
        }
        kind.most_folded = n_rows;
    }
}

// From half a prefill's rows on or, where unpacking takes too long for so few, for whole ones.
void Products::measure_unpacking(Compute & compute, Kind & kind, int n_many) const {
    for (const int n_rows : {n_many / 2, n_many}) {
        const double us = time(compute, kind, n_rows, Form::kDirect, kRunsOfMany);
        const double unpacked_us = us > 0 ? time(compute, kind, n_rows, Form::kUnpacked, kRunsOfMany) : 0;
        if (unpacked_us <= 0) {
            return;
        }
        if (unpacked_us < kClear * us) {
            kind.least_unpacked = n_rows;
            return;
        }
    }
}

void Products::measure(Compute & compute, int n_many) {
    if (is_measured_ || compute.device().is_cpu) {
        return;
    }
    is_measured_ = true;
    if (n_many >= kLeastMany) {
        add_row_numbers(compute, false);
    }
    double all_bytes = 0;
    for (const Kind & kind : kinds_) {
        all_bytes += kind.bytes();
    }
    const int64_t start = now_us();
    // What takes the most bytes first: it must not be left out when time is over.
    std::vector<Kind *> by_bytes;
    for (Kind & kind : kinds_) {
        by_bytes.push_back(&kind);
    }
    std::sort(by_bytes.begin(), by_bytes.end(), [](const Kind * a, const Kind * b) { return a->bytes() > b->bytes(); });
    for (Kind * measured : by_bytes) {
        Kind & kind = *measured;
        const bool is_small = ggml_nbytes(kind.samples[0]) <= kMostFolded;
        if (us_since(start) > kMeasureUs || (!is_small && kind.bytes() < kLeastShare * all_bytes)) {
            continue;
        }
        if (is_small) {
            measure_folding(compute, kind);
        } else {
            const double few_us = time(compute, kind, kFewRows, Form::kDirect, kRuns);
            const double more_us = time(compute, kind, kFewRows + 1, Form::kDirect, kRuns);
            if (few_us > 0 && more_us > 0) {
                few_us_ += kind.n_weights * few_us;
                more_us_ += kind.n_weights * more_us;
            }
        }
        if (can_unpack(kind)) {
            measure_unpacking(compute, kind, n_many);
        }
        log_line(DFLASH_LOG_DEBUG, format("%s: %d products of %s %lld x %lld: in parts up to %d rows, unpacked from %d rows on.", compute.device().name.c_str(),
                                          kind.n_weights, ggml_type_name(kind.type), static_cast<long long>(kind.n_in), static_cast<long long>(kind.n_out),
                                          kind.most_folded, kind.least_unpacked));
    }
}

bool Products::can_unpack(const Kind & kind) const {
    return row_numbers_ && static_cast<uint64_t>(kind.n_in * kind.n_out) * sizeof(float) <= kMostUnpacked;
}

void Products::assume(const Compute & compute, int n_many) {
    if (is_measured_ || compute.device().is_cpu || n_many < kLeastMany || row_numbers_) {
        return;
    }
    add_row_numbers(compute, true);
    for (Kind & kind : kinds_) {
        kind.least_unpacked = can_unpack(kind) ? n_many / 2 : INT32_MAX;
    }
}

bool Products::is_more_faster() const {
    return more_us_ > 0 && more_us_ < kClear * few_us_;
}

} // namespace dflash
