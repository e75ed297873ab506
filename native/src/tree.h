// The draft tree: best-first construction from the draft's marginals, and the walk. Standard library only.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

namespace dflash {

// The k likeliest tokens per depth, best first. Depth 0 of the table is the first drafted position.
struct Marginals {
    int n_depths = 0;
    int k = 0;
    std::vector<int32_t> ids;     // n_depths x k
    std::vector<float> logprobs;  // n_depths x k, natural logarithm, non-increasing within a depth
    // Only of drafts whose head looks at the token before (DFlash2, DSpark), else empty: n_depths x k x k, at
    // [(depth * k + before) * k + candidate], the log-probability of a candidate when candidate `before` of the depth
    // above stands before it (before = 0 at depth 0: the root). `logprobs` then belongs to the greedy path, whose
    // tokens come first in `ids`. A repeated token has -infinity.
    std::vector<float> conditional;
};

// Row 0 is the root; parents come before children; siblings have different tokens.
struct Tree {
    std::vector<int32_t> tokens;
    std::vector<int32_t> parents;      // -1 for the root
    std::vector<int32_t> depths;       // 0 for the root
    std::vector<int32_t> ranks;        // how many candidates for its place are likelier; 0 for the root
    std::vector<float> path_logprobs;  // of the path from the root, 0 for the root
    int n_rows() const { return static_cast<int>(tokens.size()); }
    int n_nodes() const { return n_rows() - 1; }
};

struct TreeShape {
    int budget = 0;        // most nodes, the root not counted
    bool is_chain = false; // only rank 0
};

// The heaviest `budget` prefixes under the product of the marginals (or of the conditionals, where there are any), in
// order of decreasing weight. O(budget log budget).
Tree build_tree(int32_t root, const Marginals & marginals, const TreeShape & shape);

// A tree given by hand (tests, probes). Throws std::invalid_argument when parents are not earlier rows.
Tree make_tree(const std::vector<int32_t> & tokens, const std::vector<int32_t> & parents);

// The rows the target agrees with, root first, and the tokens it chose after each of them: the last is the bonus.
struct Accepted {
    std::vector<int32_t> rows;
    std::vector<int32_t> tokens; // same length as rows
};

// `choose(row, path)` is the target's own token after that row; path holds the tokens chosen so far. It is called once
// per accepted row, in order, so a sampler may draw in it. Walking follows the child equal to the choice.
Accepted walk(const Tree & tree, const std::function<int32_t(int row, const std::vector<int32_t> & path)> & choose);

} // namespace dflash
