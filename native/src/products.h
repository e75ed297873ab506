// How a device multiplies rows by weights fastest. Its kernels change class at row counts that differ between devices,
// types and sizes; so the ways to compute a product are timed, once per model, and the fastest is taken.
#pragma once

#include <cstdint>
#include <vector>

#include "memory.h"

namespace dflash {

class Products {
  public:
    // Graphs will multiply by this weight.
    void add(const ggml_tensor * weight);
    // Time every kind of weight on a GPU, when the weights are there; later calls do nothing. `n_many`: rows of a
    // prefill, 0 where no memory is to be spent on making them faster.
    void measure(Compute & compute, int n_many);
    // For plans: what measure may decide, where it takes the most memory.
    void assume(const Compute & compute, int n_many);

    // W x: x [n_in, n] -> [n_out, n].
    ggml_tensor * multiply(ggml_context * ctx, ggml_tensor * weight, ggml_tensor * x) const;
    // Whether a few rows more than eight cost clearly less than eight: they are computed by other kernels.
    bool is_more_faster() const;

  private:
    // Weights of one type and shape.
    struct Kind {
        ggml_type type = GGML_TYPE_F32;
        int64_t n_in = 0;
        int64_t n_out = 0;
        int n_weights = 0;
        std::vector<const ggml_tensor *> samples; // some of them
        int most_folded = 0;                      // up to so many rows, several at a time are faster than all at once
        int least_unpacked = INT32_MAX;           // from so many rows on, the weight is better turned into F32 first
        double bytes() const { return static_cast<double>(n_weights) * static_cast<double>(ggml_nbytes(samples[0])); }
    };
    // A way to compute a product.
    enum class Form { kDirect, kFolded, kUnpacked };

    const Kind * kind_of(const ggml_tensor * weight) const;
    ggml_tensor * build(ggml_context * ctx, ggml_tensor * weight, ggml_tensor * x, Form form) const;
    double time(Compute & compute, const Kind & kind, int n_rows, Form form, int n_runs) const;
    void measure_folding(Compute & compute, Kind & kind) const;
    void measure_unpacking(Compute & compute, Kind & kind, int n_many) const;
    bool can_unpack(const Kind & kind) const;
    void add_row_numbers(const Compute & compute, bool is_plan);

    std::vector<Kind> kinds_;
    bool is_measured_ = false;
    double few_us_ = 0;  // of eight rows by all larger weights
    double more_us_ = 0; // of nine
    ContextPtr ctx_;
    ggml_backend_buffer_ptr buffer_;
    ggml_tensor * row_numbers_ = nullptr; // I32 [most n_out]: 0, 1, 2, ...
};

} // namespace dflash
