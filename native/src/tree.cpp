// Best-first construction: under the product of the marginals the heaviest `budget` prefixes are a tree, and a heap
// finds them in order of weight. With conditionals the same holds, each node having its own order of candidates.

#include "tree.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <stdexcept>
#include <string>

namespace dflash {
namespace {

// A prefix that may become a node next. Every prefix is reached once: from its parent when its rank is 0, else from the
// sibling one rank better; neither is lighter than the prefix itself.
struct Candidate {
    double weight = 0;        // log-probability of the whole path
    double parent_weight = 0;
    int parent = 0;           // row
    int depth = 0;            // row of the marginals
    int rank = 0;             // among its siblings, likeliest first
    int number = 0;           // order of arrival: settles ties the same way everywhere
};

constexpr int kMostReserved = 1024; // nodes: budgets may be larger than anything that will be built

struct IsLighter {
    bool operator()(const Candidate & a, const Candidate & b) const { return a.weight != b.weight ? a.weight < b.weight : a.number > b.number; }
};

class Builder {
  public:
    Builder(int32_t root, const Marginals & marginals, const TreeShape & shape) : marginals_(marginals), shape_(shape) {
        const size_t n = at(std::max(marginals.n_depths, 0), 0);
        if (marginals.ids.size() < n || marginals.logprobs.size() < n) {
            throw std::invalid_argument("marginals: fewer values than n_depths x k");
        }
        if (is_conditional() && marginals.conditional.size() < n * static_cast<size_t>(std::max(marginals.k, 0))) {
            throw std::invalid_argument("marginals: fewer conditionals than n_depths x k x k");
        }
        reserve(static_cast<size_t>(std::clamp(shape.budget, 0, kMostReserved)) + 1);
        add(root, -1, 0, 0, 0, 0.0);
    }

    Tree build() {
        if (marginals_.n_depths <= 0 || marginals_.k <= 0 || shape_.budget <= 0) {
            return std::move(tree_);
        }
        if (shape_.is_chain) {
            grow_chain();
        } else {
            push(0, 0.0, 0, 0);
            grow();
        }
        return std::move(tree_);
    }

  private:
    void reserve(size_t n_rows) {
        for (std::vector<int32_t> * each : {&tree_.tokens, &tree_.parents, &tree_.depths, &tree_.ranks}) {
            each->reserve(n_rows);
        }
        tree_.path_logprobs.reserve(n_rows);
        candidates_.reserve(n_rows);
        heap_.reserve(2 * n_rows); // a node brings at most two prefixes in
    }

    bool is_full() const { return tree_.n_nodes() >= shape_.budget; }

    bool is_conditional() const { return !marginals_.conditional.empty(); }

    size_t at(int depth, int candidate) const {
        return static_cast<size_t>(depth) * static_cast<size_t>(std::max(marginals_.k, 0)) + static_cast<size_t>(candidate);
    }

    // A log-probability as the heap needs it: never above 0, and never NaN.
    static double cleaned(float logprob) {
        const auto value = static_cast<double>(logprob);
        return value <= 0 ? value : value > 0 ? 0.0 : -std::numeric_limits<double>::infinity();
    }

    const float * conditional(int depth, int before) const { return &marginals_.conditional[at(depth, before) * static_cast<size_t>(marginals_.k)]; }

    // Candidates of the children of a row at `depth` - 1, likeliest first. Sorted when a row first gets a child: most
    // of the table is never looked at.
    const std::vector<int> & order(int depth, int before) {
        std::vector<int> & sorted = orders_[at(depth, before)];
        if (sorted.empty()) {
            const float * logprobs = conditional(depth, before);
            sorted.resize(static_cast<size_t>(marginals_.k));
            std::iota(sorted.begin(), sorted.end(), 0);
            std::stable_sort(sorted.begin(), sorted.end(), [&](int a, int b) { return cleaned(logprobs[a]) > cleaned(logprobs[b]); });
        }
        return sorted;
    }

    // The candidate of that rank among the children of `parent`.
    int candidate_at(int parent, int depth, int rank) {
        return is_conditional() ? order(depth, candidates_[static_cast<size_t>(parent)])[static_cast<size_t>(rank)] : rank;
    }

    double logprob(int parent, int depth, int rank) {
        const int own = candidate_at(parent, depth, rank);
        return cleaned(is_conditional() ? conditional(depth, candidates_[static_cast<size_t>(parent)])[own] : marginals_.logprobs[at(depth, own)]);
    }

    int32_t id(int depth, int candidate) const { return marginals_.ids[at(depth, candidate)]; }

    bool is_repeated(int parent, int depth, int rank) {
        const int32_t token = id(depth, candidate_at(parent, depth, rank));
        for (int r = 0; r < rank; ++r) {
            if (id(depth, candidate_at(parent, depth, r)) == token) {
                return true;
            }
        }
        return false;
    }

    void add(int32_t token, int parent, int candidate, int depth, int rank, double weight) {
        tree_.tokens.push_back(token);
        tree_.parents.push_back(parent);
        tree_.depths.push_back(depth);
        tree_.ranks.push_back(rank);
        tree_.path_logprobs.push_back(static_cast<float>(weight));
        candidates_.push_back(candidate);
    }

    void add_child(int parent, int depth, int rank, double weight) {
        const int own = candidate_at(parent, depth, rank);
        add(id(depth, own), parent, own, depth + 1, rank, weight);
    }

    void push(int parent, double parent_weight, int depth, int rank) {
        heap_.push_back({parent_weight + logprob(parent, depth, rank), parent_weight, parent, depth, rank, n_pushed_++});
        std::push_heap(heap_.begin(), heap_.end(), IsLighter());
    }

    // Rank 0 of each depth.
    void grow_chain() {
        double weight = 0;
        for (int depth = 0; depth < marginals_.n_depths && !is_full(); ++depth) {
            weight += logprob(depth, depth, 0);
            if (!std::isfinite(weight)) {
                return;
            }
            add_child(depth, depth, 0, weight);
        }
    }

    void grow() {
        while (!heap_.empty() && !is_full()) {
            std::pop_heap(heap_.begin(), heap_.end(), IsLighter());
            const Candidate next = heap_.back();
            heap_.pop_back();
            if (!std::isfinite(next.weight)) {
                return; // and nothing behind it is heavier
            }
            if (next.rank + 1 < marginals_.k) {
                push(next.parent, next.parent_weight, next.depth, next.rank + 1);
            }
            if (is_repeated(next.parent, next.depth, next.rank)) {
                continue; // siblings have different tokens, whatever the marginals say
            }
            add_child(next.parent, next.depth, next.rank, next.weight);
            if (next.depth + 1 < marginals_.n_depths) {
                push(tree_.n_rows() - 1, next.weight, next.depth + 1, 0);
            }
        }
    }

    const Marginals & marginals_;
    const TreeShape & shape_;
    Tree tree_;
    std::vector<int> candidates_;             // per row: its number at its depth
    std::map<size_t, std::vector<int>> orders_; // conditionals only, by at(depth, candidate before)
    std::vector<Candidate> heap_;
    int n_pushed_ = 0;
};

} // namespace

Tree build_tree(int32_t root, const Marginals & marginals, const TreeShape & shape) {
    return Builder(root, marginals, shape).build();
}

Tree make_tree(const std::vector<int32_t> & tokens, const std::vector<int32_t> & parents) {
    if (tokens.empty() || tokens.size() != parents.size()) {
        throw std::invalid_argument("tree: " + std::to_string(tokens.size()) + " tokens and " + std::to_string(parents.size()) +
                                    " parents; one of each per row is needed");
    }
    Tree tree;
    for (size_t row = 0; row < tokens.size(); ++row) {
        const int32_t parent = parents[row];
        const bool is_good = row == 0 ? parent == -1 : parent >= 0 && static_cast<size_t>(parent) < row;
        if (!is_good) {
            throw std::invalid_argument("tree: row " + std::to_string(row) + " has parent " + std::to_string(parent) +
                                        (row == 0 ? "; the root's is -1" : "; it must be an earlier row"));
        }
        tree.tokens.push_back(tokens[row]);
        tree.parents.push_back(parent);
        tree.depths.push_back(row == 0 ? 0 : tree.depths[static_cast<size_t>(parent)] + 1);
        const auto siblings_begin = tree.parents.begin() + (row == 0 ? 0 : 1);
        tree.ranks.push_back(static_cast<int32_t>(std::count(siblings_begin, tree.parents.end(), parent)) - 1);
        tree.path_logprobs.push_back(0.0f);
    }
    return tree;
}

Accepted walk(const Tree & tree, const std::function<int32_t(int row, const std::vector<int32_t> & path)> & choose) {
    Accepted accepted;
    int row = 0;
    while (row >= 0) {
        const int32_t token = choose(row, accepted.tokens);
        accepted.rows.push_back(row);
        accepted.tokens.push_back(token);
        int child = -1;
        for (int next = row + 1; next < tree.n_rows() && child < 0; ++next) {
            const auto at = static_cast<size_t>(next);
            if (tree.parents[at] == row && tree.tokens[at] == token) {
                child = next;
            }
        }
        row = child;
    }
    return accepted;
}

} // namespace dflash
