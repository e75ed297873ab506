// Grouped dynamic convolutions; see draft_conv.h.
#include "draft_conv.h"

#include "draft_config.h"

namespace dflash {

DynamicConv::DynamicConv(Weights & weights, const std::string & block, const std::string & name, int64_t n_embd, int64_t n_taps, int64_t group)
    : n_taps_(n_taps),
      group_(group) {
    const ModelFile & file = weights.file();
    const std::string base = tensor_name(file, {block + name + "_conv_base", block + name + "_conv.base", block + name + "_conv_base.weight"});
    const std::string projection = tensor_name(file, {block + name + "_conv_proj.weight", block + name + "_conv.proj.weight"});
    base_ = weights.add(file.need_tensor(base, {n_embd, n_taps, 2}), Use::kVector);
    projection_ = add_linear(weights, projection.substr(0, projection.size() - 7), n_embd, 2 * n_taps * (n_embd / group));
}

ggml_tensor * DynamicConv::filter(ggml_context * ctx, ggml_tensor * rows, ggml_tensor * kernels, int side) const {
    const int64_t n_embd = rows->ne[0];
    const int64_t n = rows->ne[1];
    const int64_t n_groups = n_embd / group_;
    // Zero rows in front, so that a tap is a view; then everything as [channel in group, group, row].
    ggml_tensor * padded = n_taps_ > 1 ? ggml_pad_ext(ctx, rows, 0, 0, static_cast<int>(n_taps_ - 1), 0, 0, 0, 0, 0) : rows;
    ggml_tensor * sum = nullptr;
    for (int64_t tap = 0; tap < n_taps_; ++tap) {
        const size_t first = static_cast<size_t>(n_taps_ - 1 - tap) * padded->nb[1];
        ggml_tensor * shifted = ggml_view_3d(ctx, padded, group_, n_groups, n, static_cast<size_t>(group_) * padded->nb[0], padded->nb[1], first);
        const size_t base_at = static_cast<size_t>(side) * base_->nb[2] + static_cast<size_t>(tap) * base_->nb[1];
        ggml_tensor * base = ggml_view_2d(ctx, base_, group_, n_groups, static_cast<size_t>(group_) * base_->nb[0], base_at);
        const size_t kernel_at = static_cast<size_t>((side * n_taps_ + tap) * n_groups) * kernels->nb[0];
        ggml_tensor * kernel = ggml_view_3d(ctx, kernels, 1, n_groups, n, kernels->nb[0], kernels->nb[1], kernel_at);
        ggml_tensor * part = ggml_add(ctx, ggml_mul(ctx, shifted, base), ggml_mul(ctx, shifted, kernel));
        sum = sum ? ggml_add(ctx, sum, part) : part;
    }
    return ggml_reshape_2d(ctx, sum, n_embd, n);
}

} // namespace dflash
