// Whether a device repeats a computation as it first did it; see passes.h.
#include <algorithm>
#include <cmath>

#include "passes.h"

namespace dflash {

// Drivers have been met that compute something else when they repeat a captured computation. Run a step and a verify
// several times from the same start: the first run is direct, the last one a replay.
void Passes::check_replay() {
    const int n_past = std::min(8, shape_.context_tokens - 1);
    const int n_rows = std::min(8, shape_.max_rows);
    const auto n_vocab = static_cast<int32_t>(target_.n_vocab());
    std::vector<int32_t> tokens;
    std::vector<int32_t> parents;
    for (int i = 0; i < std::max(n_past, n_rows); ++i) {
        tokens.push_back((7 * i + 1) % n_vocab);
        parents.push_back((i - 1) / 2); // of a binary tree
    }
    parents[0] = -1;
    const Tree tree = make_tree({tokens.begin(), tokens.begin() + n_rows}, {parents.begin(), parents.begin() + n_rows});
    const auto run_all = [&] {
        std::vector<float> found;
        const auto collect = [&](int row) {
            const float * values = logits(row);
            found.insert(found.end(), values, values + n_vocab);
        };
        clear();
        append({tokens.begin(), tokens.begin() + n_past}, 0, false, drafting_ != nullptr);
        if (n_rows > 1) {
            verify(tree, n_past, drafting_ != nullptr);
            collect(n_rows - 1);
        }
        append({tokens[0]}, n_past, true, drafting_ != nullptr);
        collect(0);
        return found;
    };
    const std::vector<float> direct = run_all();
    for (int i = 0; i < 3; ++i) {
        const std::vector<float> again = run_all();
        float largest = 0;
        float difference = 0;
        for (size_t at = 0; at < direct.size(); ++at) {
            largest = std::max(largest, std::abs(direct[at]));
            difference = std::max(difference, std::abs(again[at] - direct[at]));
        }
        if (difference > 1e-3f * largest) {
            throw Error(DFLASH_DEVICE_FAILED, format("The device %s computes different results when it repeats a computation. Update its driver, or "
                                                     "set the environment variable GGML_CUDA_PDL to 0, and start again.",
                                                     target_.device().name.c_str()));
        }
    }
    clear();
}

} // namespace dflash
