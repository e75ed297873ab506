// What a graph is told about the rows it computes: who sees whom, and which path leads to a row. Standard library only.
#pragma once

#include <cstdint>

#include "tree.h"

namespace dflash {

constexpr uint16_t kVisible = 0x0000; // 0 as F16
constexpr uint16_t kHidden = 0xFC00;  // -infinity as F16

// Columns [first, first + n_columns) of a mask, row-major, hold slots; these functions fill `out` whole.
struct MaskPart {
    int first = 0;
    int n_columns = 0;
};
// Row i sees slots [begin, end); with a window, of those only the last `window` before and at slot n_past + i.
void fill_rows_mask(MaskPart part, int n_rows, int n_past, int window, bool is_causal, uint16_t * out);
// Rows of a tree at slots n_past and up: each sees the slots before n_past, its ancestors and itself. Rows beyond the
// tree look like children of the root: finite everywhere. With a window each sees only the last `window` positions of its
// path, its own included.
void fill_tree_mask(MaskPart part, const Tree & tree, int n_rows, int n_past, int window, uint16_t * out);

// Row of (n_conv_rows committed rows, tree rows) that feeds each tap of each row's convolution: [(n_conv_rows + 1) n_rows],
// tap-major, the row's own tap last.
void fill_conv_index(const Tree & tree, int n_rows, int n_conv_rows, int32_t * out);
// paths [n, n*n + n]: row (i, j) has ones on the path from below j down to i when j is above i; then ancestors-or-self.
// masks [n, n, 2]: ancestor-or-self, then strict ancestor.
void fill_paths(const Tree & tree, int n_rows, float * paths, float * masks);

} // namespace dflash
