// Calibration of draft probabilities; see calibration.h.
#include "calibration.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "tuner_numbers.h"

namespace dflash {
namespace {

// Memory of about 50 steps; a factor stays near 1 until about this many tests were made.
constexpr double kDecay = 0.98;
constexpr double kPrior = 4;
constexpr double kLargestSum = 1e4;

int rank_class_of(int rank) {
    return rank == 0 ? 0 : rank < 3 ? 1 : 2;
}

} // namespace

// What has come true over what was promised. Without evidence the factor is that of the same class at all depths, and
// without any at all it is 1.
std::array<double, Calibration::kClasses> Calibration::factors(int depth) const {
    const auto d = static_cast<size_t>(std::clamp(depth, 0, kDepths - 1));
    std::array<double, kClasses> found{};
    for (size_t c = 0; c < kClasses; ++c) {
        double hits = kPrior;
        double expected = kPrior;
        for (size_t other = 0; other < expected_.size(); ++other) {
            hits += hits_[other][c];
            expected += expected_[other][c];
        }
        found[c] = (hits_[d][c] + kPrior * hits / expected) / (expected_[d][c] + kPrior);
    }
    return found;
}

// Rank class of each of `k` candidates by its log-probability.
std::vector<int> Calibration::rank_classes(const float * logprobs, size_t k) {
    std::vector<size_t> order(k);
    std::iota(order.begin(), order.end(), size_t{0});
    std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return logprobs[a] > logprobs[b]; });
    std::vector<int> classes(k);
    for (size_t rank = 0; rank < k; ++rank) {
        classes[order[rank]] = rank_class_of(static_cast<int>(rank));
    }
    return classes;
}

// The same for each row of a conditional table. Candidates keep their places: the rows below refer to them.
void Calibration::calibrate_conditional(Marginals & marginals) const {
    const auto k = static_cast<size_t>(marginals.k);
    std::vector<double> probabilities(k);
    for (int depth = 0; depth < marginals.n_depths; ++depth) {
        const std::array<double, kClasses> factor = factors(depth);
        for (size_t before = 0; before < (depth == 0 ? 1 : k); ++before) {
            float * row = &marginals.conditional[(static_cast<size_t>(depth) * k + before) * k];
            const std::vector<int> classes = rank_classes(row, k);
            double sum = 0;
            for (size_t i = 0; i < k; ++i) {
                probabilities[i] = std::exp(static_cast<double>(row[i])) * factor[static_cast<size_t>(classes[i])];
                sum += probabilities[i];
            }
            for (size_t i = 0; i < k; ++i) {
                row[i] = static_cast<float>(std::log(probabilities[i] / std::max(sum, 1.0)));
            }
        }
    }
}

// What the draft itself said of the children of a row, candidate by candidate; nullptr unless it was asked of a conditional
// draft and the row is one of its candidates.
const float * Calibration::conditional_row(const Tree & tree, size_t row) const {
    const auto k = static_cast<size_t>(std::max(conditional_origin_.k, 0));
    const auto depth = static_cast<size_t>(tree.depths[row]);
    if (conditional_origin_.conditional.empty() || depth >= static_cast<size_t>(conditional_origin_.n_depths)) {
        return nullptr;
    }
    size_t before = 0; // the root has row 0 to itself
    if (depth > 0) {
        const auto begin = conditional_origin_.ids.begin() + static_cast<ptrdiff_t>((depth - 1) * k);
        before = static_cast<size_t>(std::find(begin, begin + conditional_origin_.k, tree.tokens[row]) - begin);
    }
    return before < k ? &conditional_origin_.conditional[(depth * k + before) * k] : nullptr;
}

Marginals Calibration::calibrate(const Marginals & marginals) {
    Marginals calibrated = marginals;
    if (!marginals.conditional.empty()) {
        conditional_origin_ = marginals;
        calibrate_conditional(calibrated);
        return calibrated;
    }
    const auto k = static_cast<size_t>(std::max(marginals.k, 0));
    n_origin_ranks_ = static_cast<int>(k);
    origins_.assign(calibrated.ids.size(), Origin{});
    std::vector<std::pair<double, size_t>> row(k);
    std::vector<double> said(k); // probabilities
    for (int depth = 0; depth < marginals.n_depths; ++depth) {
        const size_t begin = static_cast<size_t>(depth) * k;
        const std::array<double, kClasses> factor = factors(depth);
        double sum = 0;
        for (size_t rank = 0; rank < k; ++rank) {
            said[rank] = std::exp(static_cast<double>(marginals.logprobs[begin + rank]));
            row[rank] = {said[rank] * factor[static_cast<size_t>(rank_class_of(static_cast<int>(rank)))], rank};
            sum += row[rank].first;
        }
        const auto is_likelier = [](const auto & a, const auto & b) { return a.first > b.first; };
        if (!std::is_sorted(row.begin(), row.end(), is_likelier)) {
            std::stable_sort(row.begin(), row.end(), is_likelier);
        }
        for (size_t rank = 0; rank < k; ++rank) {
            const size_t from = begin + row[rank].second;
            calibrated.ids[begin + rank] = marginals.ids[from];
            calibrated.logprobs[begin + rank] = static_cast<float>(std::log(row[rank].first / std::max(sum, 1.0)));
            origins_[begin + rank] = {marginals.ids[from], rank_class_of(static_cast<int>(row[rank].second)), said[row[rank].second]};
        }
    }
    return calibrated;
}

void Calibration::forget_origins() {
    origins_.clear();
    conditional_origin_ = {};
}

// ---- learning ---------------------------------------------------------------------------------------------------

void Calibration::book(int depth, int rank_class, double probability, bool is_hit) {
    const auto d = static_cast<size_t>(std::clamp(depth, 0, kDepths - 1));
    expected_[d][static_cast<size_t>(rank_class)] += std::min(probability, 1.0);
    hits_[d][static_cast<size_t>(rank_class)] += is_hit ? 1.0 : 0.0;
}

// After each accepted row the target said its own token, which puts every candidate of that depth to the test, verified
// or not. So the sums are conditional on the parent: deep rows are not judged by how rarely they are reached, nor wide
// ones by how rarely they are verified.
void Calibration::observe(const Verdict & verdict) {
    for (size_t d = 0; d < expected_.size(); ++d) {
        for (size_t c = 0; c < kClasses; ++c) {
            expected_[d][c] *= kDecay;
            hits_[d][c] *= kDecay;
        }
    }
    for (size_t i = 0; i < verdict.accepted_rows->size(); ++i) {
        const int32_t row = (*verdict.accepted_rows)[i];
        if (row >= 0 && row < verdict.tree->n_rows()) {
            book_row(verdict, i);
        }
    }
}

void Calibration::book_row(const Verdict & verdict, size_t i) {
    const Tree & tree = *verdict.tree;
    const std::vector<int32_t> & rows = *verdict.accepted_rows;
    const auto k = static_cast<size_t>(n_origin_ranks_);
    const auto depth = static_cast<size_t>(tree.depths[static_cast<size_t>(rows[i])]);
    const bool is_said = verdict.accepted_tokens != nullptr && i < verdict.accepted_tokens->size();
    if (!is_said && i + 1 == rows.size()) {
        book_children(verdict, i);
        return;
    }
    const int32_t token = is_said ? (*verdict.accepted_tokens)[i] : tree.tokens[static_cast<size_t>(rows[i + 1])];
    if (k > 0 && (depth + 1) * k <= origins_.size()) {
        for (size_t at = depth * k; at < (depth + 1) * k; ++at) {
            const Origin & origin = origins_[at];
            book(static_cast<int>(depth), origin.rank_class, origin.probability, origin.token == token);
        }
        return;
    }
    const float * said = conditional_row(tree, static_cast<size_t>(rows[i]));
    if (said == nullptr) {
        book_children(verdict, i);
        return;
    }
    const auto n = static_cast<size_t>(conditional_origin_.k);
    const std::vector<int> classes = rank_classes(said, n);
    for (size_t c = 0; c < n; ++c) {
        book(static_cast<int>(depth), classes[c], std::exp(static_cast<double>(said[c])), conditional_origin_.ids[depth * n + c] == token);
    }
}

// The token is not known, or was no candidate of a table: then only the verified children were tested.
void Calibration::book_children(const Verdict & verdict, size_t i) {
    const Tree & tree = *verdict.tree;
    const std::vector<int32_t> & rows = *verdict.accepted_rows;
    const auto k = static_cast<size_t>(n_origin_ranks_);
    const auto depth = static_cast<size_t>(tree.depths[static_cast<size_t>(rows[i])]);
    for (int row = rows[i] + 1; row < std::min(tree.n_rows(), verdict.n_rows); ++row) {
        const auto child = static_cast<size_t>(row);
        if (tree.parents[child] != rows[i]) {
            continue;
        }
        const float path = tree.path_logprobs[child] - tree.path_logprobs[static_cast<size_t>(rows[i])];
        const size_t at = depth * k + static_cast<size_t>(tree.ranks[child]);
        const bool is_known = at < origins_.size() && origins_[at].token == tree.tokens[child];
        book(static_cast<int>(depth), is_known ? origins_[at].rank_class : rank_class_of(tree.ranks[child]),
             is_known ? origins_[at].probability : std::exp(static_cast<double>(path)), i + 1 < rows.size() && rows[i + 1] == row);
    }
}

// ---- remembered -------------------------------------------------------------------------------------------------

void Calibration::write(std::vector<double> & out) const {
    for (const Sums * sums : {&expected_, &hits_}) {
        for (const auto & classes : *sums) {
            out.insert(out.end(), classes.begin(), classes.end());
        }
    }
}

bool Calibration::read(const std::vector<double> & values, size_t & at) {
    NumberReader in(values, at);
    bool is_sound = true;
    for (Sums * sums : {&expected_, &hits_}) {
        for (auto & classes : *sums) {
            for (double & sum : classes) {
                is_sound = is_sound && in.take(sum, 0, kLargestSum);
            }
        }
    }
    return is_sound;
}

} // namespace dflash
