// Masks and paths; see tables.h.
#include "tables.h"

#include <algorithm>
#include <cstddef>

namespace dflash {

namespace {

// Rows beyond the tree hang on the root.
int parent_of(const Tree & tree, int row) {
    return row < tree.n_rows() ? tree.parents[static_cast<size_t>(row)] : 0;
}

// Show slots [begin, end) in one row of a part.
void show(MaskPart part, int begin, int end, uint16_t * row) {
    const int from = std::max(begin - part.first, 0);
    const int to = std::min(end - part.first, part.n_columns);
    if (from < to) {
        std::fill(row + from, row + to, kVisible);
    }
}

} // namespace

void fill_rows_mask(MaskPart part, int n_rows, int n_past, int window, bool is_causal, uint16_t * out) {
    std::fill_n(out, static_cast<size_t>(part.n_columns) * static_cast<size_t>(n_rows), kHidden);
    for (int i = 0; i < n_rows; ++i) {
        const int begin = window > 0 ? std::max(0, n_past + i - window + 1) : 0;
        show(part, begin, n_past + (is_causal ? i + 1 : n_rows), out + static_cast<std::ptrdiff_t>(i) * part.n_columns);
    }
}

void fill_tree_mask(MaskPart part, const Tree & tree, int n_rows, int n_past, int window, uint16_t * out) {
    std::fill_n(out, static_cast<size_t>(part.n_columns) * static_cast<size_t>(n_rows), kHidden);
    for (int i = 0; i < n_rows; ++i) {
        uint16_t * row = out + static_cast<std::ptrdiff_t>(i) * part.n_columns;
        int a = i < tree.n_rows() ? i : 0;
        // The first position that is seen: of rows in the tree, the depth is the position.
        const int first = window > 0 ? n_past + tree.depths[static_cast<size_t>(a)] - window + 1 : 0;
        show(part, std::max(first, 0), n_past, row);
        for (; a >= 0 && n_past + tree.depths[static_cast<size_t>(a)] >= first; a = tree.parents[static_cast<size_t>(a)]) {
            show(part, n_past + a, n_past + a + 1, row);
        }
    }
}

void fill_conv_index(const Tree & tree, int n_rows, int n_conv_rows, int32_t * out) {
    for (int i = 0; i < n_rows; ++i) {
        int row = i; // walks up the tree, then back through the committed rows
        int n_beyond_root = 0;
        for (int tap = n_conv_rows; tap >= 0; --tap) {
            out[tap * n_rows + i] = row >= 0 ? n_conv_rows + row : n_conv_rows - n_beyond_root;
            if (row >= 0) {
                row = parent_of(tree, row);
            }
            n_beyond_root += row < 0 ? 1 : 0;
        }
    }
}

void fill_paths(const Tree & tree, int n_rows, float * paths, float * masks) {
    const auto n = static_cast<size_t>(n_rows);
    std::fill_n(paths, (n * n + n) * n, 0.0f);
    std::fill_n(masks, 2 * n * n, 0.0f);
    for (int i = 0; i < n_rows; ++i) {
        const auto row = static_cast<size_t>(i);
        float * ancestors = &paths[(n * n + row) * n];
        for (int a = i; a >= 0; a = parent_of(tree, a)) {
            const auto above = static_cast<size_t>(a);
            // Rows from below `a` down to i: what the decay between the two is summed over.
            float * between = &paths[(row * n + above) * n];
            for (int b = i; b != a; b = parent_of(tree, b)) {
                between[b] = 1.0f;
            }
            ancestors[a] = 1.0f;
            masks[row * n + above] = 1.0f;
            masks[(n + row) * n + above] = a == i ? 0.0f : 1.0f;
        }
    }
}

} // namespace dflash
