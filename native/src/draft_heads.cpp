// Candidates and what the token before means for them, computed on the device; see draft_heads.h.
#include "draft_heads.h"

#include <algorithm>
#include <cstring>

namespace dflash {

namespace {

constexpr int64_t kChunk = 256;       // tokens looked at together when candidates are picked
constexpr int kStride = 16;           // of these, looked at by one thread
constexpr int64_t kMostSorted = 1024; // elements of a row that GPUs sort in one launch

// A table of rows by token: at least one for each of the target's.
const TensorInfo & need_table(const ModelFile & file, const std::string & name, int64_t rank, int64_t n_vocab) {
    const TensorInfo * tensor = file.tensor(name);
    if (!tensor) {
        file.refuse("tensor '" + name + "': is missing");
    }
    if (tensor->n_dims != 2 || tensor->ne[0] != rank || tensor->ne[1] < n_vocab) {
        file.refuse(format("tensor '%s': has %lld rows of %lld values; %lld rows of %lld are needed.", name.c_str(), static_cast<long long>(tensor->ne[1]),
                           static_cast<long long>(tensor->ne[0]), static_cast<long long>(n_vocab), static_cast<long long>(rank)));
    }
    return *tensor;
}

// The target's token of each row of a reduced vocabulary.
std::vector<float> read_target_ids(const ModelFile & file, const TensorInfo & d2t, int64_t n_vocab) {
    if (d2t.type != GGML_TYPE_I64 && d2t.type != GGML_TYPE_I32) {
        file.refuse("tensor 'd2t': holds no whole numbers");
    }
    if (d2t.n_dims != 1 || d2t.ne[0] > n_vocab) {
        file.refuse(format("tensor 'd2t': has %lld entries, more than the target has tokens (%lld)", static_cast<long long>(d2t.ne[0]),
                           static_cast<long long>(n_vocab)));
    }
    std::vector<float> ids(static_cast<size_t>(d2t.ne[0]));
    for (size_t i = 0; i < ids.size(); ++i) {
        int64_t id = 0;
        int32_t narrow = 0;
        if (d2t.type == GGML_TYPE_I64) {
            std::memcpy(&id, d2t.data + i * sizeof(id), sizeof(id));
        } else {
            std::memcpy(&narrow, d2t.data + i * sizeof(narrow), sizeof(narrow));
            id = narrow;
        }
        if (id < 0 || id >= n_vocab || id >= 1 << 24) { // F32 counts to 2^24
            file.refuse(format("tensor 'd2t': entry %zu is %lld, which is not a token of the target", i, static_cast<long long>(id)));
        }
        ids[i] = static_cast<float>(id);
    }
    return ids;
}

// Out of each column of [n, d] the values at ids [k, d].
ggml_tensor * pick(ggml_context * ctx, ggml_tensor * columns, ggml_tensor * ids) {
    ggml_tensor * picked = ggml_get_rows(ctx, ggml_reshape_3d(ctx, columns, 1, columns->ne[0], columns->ne[1]), ids);
    return ggml_reshape_2d(ctx, picked, ids->ne[0], ids->ne[1]);
}

ggml_tensor * column(ggml_context * ctx, ggml_tensor * matrix, int64_t i) {
    return ggml_view_2d(ctx, matrix, matrix->ne[0], 1, matrix->nb[1], static_cast<size_t>(i) * matrix->nb[1]);
}

// Columns [first, first + n) of a contiguous matrix, as one row of values.
ggml_tensor * flat_columns(ggml_context * ctx, ggml_tensor * matrix, int64_t first, int64_t n) {
    return ggml_view_1d(ctx, matrix, matrix->ne[0] * n, static_cast<size_t>(first) * matrix->nb[1]);
}

// table[ids] as [rank, k, d]
ggml_tensor * table_rows(ggml_context * ctx, ggml_tensor * table, ggml_tensor * flat_ids, int64_t k) {
    return ggml_reshape_3d(ctx, ggml_get_rows(ctx, table, flat_ids), table->ne[0], k, flat_ids->ne[0] / k);
}

// Numbers as ids below `n`, I32. A failed computation (all NaN) may give any, and looking that up would abort.
ggml_tensor * in_range(ggml_context * ctx, ggml_tensor * numbers, int64_t n) {
    return ggml_cast(ctx, ggml_clamp(ctx, numbers, 0.0f, static_cast<float>(n - 1)), GGML_TYPE_I32);
}

// The largest of each `chunk` values of a column, [n / chunk, d]. In two goes: GPUs give each result one thread.
ggml_tensor * chunk_maxima(ggml_context * ctx, ggml_tensor * columns, int64_t chunk) {
    const int width = static_cast<int>(chunk / kStride);
    ggml_tensor * best = ggml_pool_2d(ctx, columns, GGML_OP_POOL_MAX, kStride, 1, kStride, 1, 0, 0);
    return ggml_pool_2d(ctx, best, GGML_OP_POOL_MAX, width, 1, width, 1, 0, 0);
}

ggml_tensor * joined(ggml_context * ctx, ggml_tensor * before, ggml_tensor * next) {
    return before ? ggml_concat(ctx, before, next, 1) : next;
}

} // namespace

DraftHead::DraftHead(Weights & weights, Weights * borrowed, const DraftConfig & config, const Target & target)
    : target_(target),
      is_cpu_(weights.device().is_cpu),
      kind_(config.kind),
      n_embd_(config.n_embd),
      n_vocab_(target.n_vocab()),
      selector_top_k_(config.selector_top_k),
      logit_scale_(config.logit_scale),
      logit_softcap_(config.logit_softcap) {
    const ModelFile & file = weights.file();
    const auto linear = [&](const std::string & name, int64_t n_in, int64_t n_out) {
        return add_linear(weights, name.substr(0, name.size() - 7), n_in, n_out); // less ".weight"
    };
    if (const TensorInfo * d2t = file.tensor("d2t")) {
        if (!file.tensor("output.weight")) {
            file.refuse("it has a vocabulary of its own (d2t) but no output.weight");
        }
        const std::vector<float> ids = read_target_ids(file, *d2t, target.n_vocab());
        n_vocab_ = d2t->ne[0];
        target_of_ = weights.add_derived("d2t", {1, n_vocab_}, [ids](float * out) { std::copy(ids.begin(), ids.end(), out); });
    }
    if (file.tensor("output.weight")) {
        output_ = linear("output.weight", n_embd_, n_vocab_);
    } else if (borrowed) {
        output_ = add_head(*borrowed, target.n_embd(), n_vocab_);
    }
    if (kind_ == DraftKind::kDFlash2) {
        const std::string predecessor = tensor_name(file, {"selector_predecessor.weight", "dflash.selector.pred_cb", "dflash.selector.pred_cb.weight"});
        const std::string successor = tensor_name(file, {"selector_successor.weight", "dflash.selector.succ_cb", "dflash.selector.succ_cb.weight"});
        predecessor_ = weights.add(need_table(file, predecessor, config.rank, target.n_vocab()), Use::kRows);
        successor_ = weights.add(need_table(file, successor, config.rank, target.n_vocab()), Use::kRows);
        hidden_ = linear(tensor_name(file, {"selector_hidden.weight", "dflash.selector.hproj.weight"}), n_embd_, config.rank);
    } else if (kind_ == DraftKind::kDSpark) {
        const std::string w1 = tensor_name(file, {"markov_w1.weight", "dflash.dspark.markov.w1", "dflash.dspark.markov.w1.weight"});
        const std::string w2 = tensor_name(file, {"markov_w2.weight", "dflash.dspark.markov.w2", "dflash.dspark.markov.w2.weight"});
        predecessor_ = weights.add(need_table(file, w1, config.rank, target.n_vocab()), Use::kRows);
        const TensorInfo & out = file.need_tensor(w2, {config.rank, n_vocab_});
        successor_ = weights.add(out, Use::kRows);
        markov_.weight = weights.add(out, Use::kMatmul);
    }
    if (config.confidence_width > 0) {
        const std::string name = tensor_name(file, {"conf_proj.weight", "dflash.dspark.confidence.weight"});
        const std::string bias = tensor_name(file, {"conf_proj.bias", "dflash.dspark.confidence.bias"});
        confidence_weight_ = weights.add(file.need_tensor(name, {config.confidence_width, 1}), Use::kVector);
        confidence_rank_ = config.confidence_width - n_embd_;
        if (const TensorInfo * tensor = file.want_tensor(bias, {1})) {
            confidence_bias_ = weights.add(*tensor, Use::kVector);
        }
    }
}

ggml_tensor * DraftHead::logits(ggml_context * ctx, ggml_tensor * drafted) const {
    ggml_tensor * all = output_.weight ? apply(ctx, output_, drafted) : target_.head(ctx, drafted);
    if (logit_scale_ != 1) {
        all = ggml_scale(ctx, all, logit_scale_);
    }
    if (logit_softcap_ > 0) {
        all = ggml_scale(ctx, ggml_tanh(ctx, ggml_scale(ctx, all, 1 / logit_softcap_)), logit_softcap_);
    }
    return all;
}

// Devices sort small rows in one launch and large ones in many. The k likeliest tokens lie in the k chunks with the
// likeliest single token. 0: the whole row at once is as good.
int64_t DraftHead::chunk_for(int k) const {
    int64_t chunk = kChunk;
    while (n_vocab_ > kMostSorted * chunk) {
        chunk *= 2;
    }
    return is_cpu_ || chunk > kMostSorted || n_vocab_ <= 2 * k * chunk ? 0 : chunk;
}

// Those of chunks are left to the host: all it takes is a look at k * k numbers.
void DraftHead::build_candidates(DraftPass & pass, ggml_tensor * probabilities) const {
    ggml_context * ctx = pass.ctx.get();
    const int64_t n = probabilities->ne[1];
    const int64_t k = pass.k;
    const int64_t chunk = target_of_ ? 0 : chunk_for(pass.k);
    if (chunk == 0) {
        ggml_tensor * own_ids = ggml_top_k(ctx, probabilities, pass.k);
        pass.ids = target_ids(ctx, own_ids);
        pass.probabilities = pick(ctx, probabilities, own_ids);
        return;
    }
    pass.chunk = static_cast<int>(chunk);
    const int64_t n_chunks = (n_vocab_ + chunk - 1) / chunk;
    if (n_chunks * chunk != n_vocab_) {
        probabilities = ggml_pad(ctx, probabilities, static_cast<int>(n_chunks * chunk - n_vocab_), 0, 0, 0);
    }
    pass.chunks = ggml_top_k(ctx, chunk_maxima(ctx, probabilities, chunk), pass.k);
    ggml_tensor * rows = ggml_get_rows(ctx, ggml_reshape_3d(ctx, probabilities, chunk, n_chunks, n), pass.chunks); // [chunk, k, n]
    pass.ids = ggml_top_k(ctx, rows, pass.k);
    pass.probabilities = ggml_get_rows(ctx, ggml_reshape_3d(ctx, rows, 1, chunk, k * n), ggml_reshape_2d(ctx, pass.ids, k, k * n));
}

// The same when the device itself goes on with the tokens: I32 [k, n], rows of our own vocabulary.
ggml_tensor * DraftHead::likeliest(ggml_context * ctx, ggml_tensor * probabilities, int k) const {
    const int64_t chunk = chunk_for(k);
    if (chunk == 0 || k * k > kMostSorted) {
        return ggml_top_k(ctx, probabilities, k);
    }
    const int64_t n = probabilities->ne[1];
    const int64_t n_chunks = (n_vocab_ + chunk - 1) / chunk;
    if (n_chunks * chunk != n_vocab_) {
        probabilities = ggml_pad(ctx, probabilities, static_cast<int>(n_chunks * chunk - n_vocab_), 0, 0, 0);
    }
    ggml_tensor * chunks = ggml_top_k(ctx, chunk_maxima(ctx, probabilities, chunk), k);                                     // [k, n]
    ggml_tensor * rows = ggml_get_rows(ctx, ggml_reshape_3d(ctx, probabilities, chunk, n_chunks, n), chunks);               // [chunk, k, n]
    ggml_tensor * within = ggml_top_k(ctx, rows, k);                                                                         // [k, k, n]
    ggml_tensor * values = ggml_get_rows(ctx, ggml_reshape_3d(ctx, rows, 1, chunk, k * n), ggml_reshape_2d(ctx, within, k, k * n));
    ggml_tensor * picked = ggml_top_k(ctx, ggml_reshape_2d(ctx, values, static_cast<int64_t>(k) * k, n), k); // [k, n]
    // Token = chunk * width + place within; F32 counts to 2^24, and there is no integer arithmetic.
    ggml_tensor * begin = ggml_scale(ctx, ggml_cast(ctx, ggml_reshape_3d(ctx, chunks, 1, k, n), GGML_TYPE_F32), static_cast<float>(chunk));
    ggml_tensor * tokens = ggml_add(ctx, ggml_cast(ctx, within, GGML_TYPE_F32), begin);
    ggml_tensor * chosen = ggml_get_rows(ctx, ggml_reshape_3d(ctx, tokens, 1, static_cast<int64_t>(k) * k, n), picked);
    return ggml_reshape_2d(ctx, in_range(ctx, chosen, n_vocab_), k, n);
}

// Rows of our own vocabulary -> the target's ids, I32 like `ids`.
ggml_tensor * DraftHead::target_ids(ggml_context * ctx, ggml_tensor * ids) const {
    if (!target_of_) {
        return ids;
    }
    ggml_tensor * flat = ggml_get_rows(ctx, target_of_, ggml_reshape_1d(ctx, ids, ggml_nelements(ids)));
    return ggml_reshape_2d(ctx, ggml_cast(ctx, flat, GGML_TYPE_I32), ids->ne[0], ids->ne[1]);
}

void DraftHead::build(DraftPass & pass, ggml_tensor * drafted) const {
    ggml_context * ctx = pass.ctx.get();
    ggml_tensor * all = logits(ctx, drafted);
    pass.n_vocab = target_.n_vocab();
    pass.n_depths = drafted->ne[1];
    pass.k = static_cast<int>(std::min<int64_t>(kind_ == DraftKind::kDFlash2 ? selector_top_k_ : pass.k, n_vocab_));
    switch (kind_) {
        case DraftKind::kDFlash: build_candidates(pass, ggml_soft_max(ctx, all)); break;
        case DraftKind::kDFlash2: build_selector(pass, drafted, ggml_soft_max(ctx, all)); break;
        case DraftKind::kDSpark: build_markov(pass, drafted, all); break;
    }
    for (ggml_tensor * result : {pass.chunks, pass.ids, pass.probabilities, pass.after_root, pass.after, pass.chain, pass.chain_probabilities, pass.confidence,
                                 pass.confidence_root, pass.confidence_after}) {
        if (result) {
            ggml_set_output(result);
            ggml_build_forward_expand(pass.graph, result);
            pass.results.push_back(result);
        }
    }
}

// after[c] = sum over r of predecessor[before][r] * (hidden_ h)[r] * successor[c][r]
void DraftHead::build_selector(DraftPass & pass, ggml_tensor * drafted, ggml_tensor * probabilities) const {
    ggml_context * ctx = pass.ctx.get();
    const int64_t k = pass.k;
    const int64_t d = drafted->ne[1];
    ggml_tensor * own_ids = likeliest(ctx, probabilities, pass.k);
    pass.ids = target_ids(ctx, own_ids);
    pass.probabilities = pick(ctx, probabilities, own_ids);
    ggml_tensor * weights = apply(ctx, hidden_, drafted); // [rank, d]
    ggml_tensor * successors = table_rows(ctx, successor_, flat_columns(ctx, pass.ids, 0, d), k);
    ggml_tensor * root = ggml_get_rows(ctx, predecessor_, ggml_view_1d(ctx, pass.tokens, 1, 0));
    const auto from = [&](ggml_tensor * rows, int64_t first) {
        return ggml_view_3d(ctx, rows, rows->ne[0], rows->ne[1], rows->ne[2] - first, rows->nb[1], rows->nb[2], static_cast<size_t>(first) * rows->nb[2]);
    };
    pass.after_root =
        ggml_mul_mat(ctx, ggml_view_2d(ctx, successors, successors->ne[0], k, successors->nb[1], 0), ggml_mul(ctx, root, column(ctx, weights, 0)));
    if (d > 1) {
        ggml_tensor * before = table_rows(ctx, predecessor_, flat_columns(ctx, pass.ids, 0, d - 1), k);
        before = ggml_mul(ctx, before, from(ggml_reshape_3d(ctx, weights, weights->ne[0], 1, d), 1));
        pass.after = ggml_mul_mat(ctx, from(successors, 1), before);
    }
}

// Along the greedy path the head is applied to all tokens, as in training. Candidates are the likeliest there and, for
// the branches, the likeliest before the head; what the head adds after each candidate is computed for these only.
void DraftHead::build_markov(DraftPass & pass, ggml_tensor * drafted, ggml_tensor * logits) const {
    ggml_context * ctx = pass.ctx.get();
    const int64_t d = drafted->ne[1];
    ggml_tensor * root = ggml_get_rows(ctx, predecessor_, ggml_view_1d(ctx, pass.tokens, 1, 0)); // [rank, 1]
    ggml_tensor * before = root;
    ggml_tensor * on_path = nullptr; // ids of the likeliest on the greedy path
    std::vector<ggml_tensor *> probabilities;
    for (int64_t i = 0; i < d; ++i) {
        ggml_tensor * shifted = ggml_add(ctx, column(ctx, logits, i), ggml_mul_mat(ctx, markov_.weight, before));
        probabilities.push_back(ggml_soft_max(ctx, shifted));
        on_path = joined(ctx, on_path, likeliest(ctx, probabilities.back(), pass.k));
        ggml_tensor * best = in_range(ctx, ggml_cast(ctx, ggml_argmax(ctx, shifted), GGML_TYPE_F32), n_vocab_);
        best = target_ids(ctx, ggml_reshape_2d(ctx, best, 1, 1));
        pass.chain = joined(ctx, pass.chain, best);
        before = ggml_get_rows(ctx, predecessor_, ggml_reshape_1d(ctx, best, 1));
    }
    ggml_tensor * alone = ggml_soft_max(ctx, logits);
    ggml_tensor * own_ids = ggml_concat(ctx, on_path, likeliest(ctx, alone, pass.k), 0);
    const int64_t k = own_ids->ne[0];
    pass.k = static_cast<int>(k);
    pass.ids = target_ids(ctx, own_ids);
    pass.probabilities = pick(ctx, alone, own_ids);
    for (int64_t i = 0; i < d; ++i) {
        ggml_tensor * picked = pick(ctx, probabilities[static_cast<size_t>(i)], column(ctx, own_ids, i));
        pass.chain_probabilities = joined(ctx, pass.chain_probabilities, picked);
    }
    ggml_tensor * after = nullptr;
    if (d > 1) {
        after = table_rows(ctx, predecessor_, flat_columns(ctx, pass.ids, 0, d - 1), k);
        pass.after = ggml_mul_mat(ctx, table_rows(ctx, successor_, flat_columns(ctx, own_ids, 1, d - 1), k), after);
    }
    if (confidence_weight_) {
        build_confidence(pass, drafted, root, after);
    }
}

void DraftHead::build_confidence(DraftPass & pass, ggml_tensor * drafted, ggml_tensor * root, ggml_tensor * before) const {
    ggml_context * ctx = pass.ctx.get();
    ggml_tensor * for_hidden = ggml_view_2d(ctx, confidence_weight_, n_embd_, 1, confidence_weight_->nb[1], 0);
    pass.confidence = ggml_mul_mat(ctx, for_hidden, drafted);
    if (confidence_bias_) {
        pass.confidence = ggml_add(ctx, pass.confidence, confidence_bias_);
    }
    if (confidence_rank_ > 0) {
        ggml_tensor * for_before =
            ggml_view_2d(ctx, confidence_weight_, confidence_rank_, 1, confidence_weight_->nb[1], static_cast<size_t>(n_embd_) * confidence_weight_->nb[0]);
        pass.confidence_root = ggml_mul_mat(ctx, for_before, root);
        if (before) {
            pass.confidence_after = ggml_mul_mat(ctx, for_before, ggml_reshape_2d(ctx, before, before->ne[0], before->ne[1] * before->ne[2]));
        }
    }
}

} // namespace dflash
