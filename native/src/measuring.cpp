// Timing of passes; see measuring.h.
#include "measuring.h"

#include <algorithm>
#include <limits>

#include "clock.h"
#include "log.h"

namespace dflash {
namespace {

constexpr double kMeasureUs = 1.0e6; // at most this long per session for measuring the device
constexpr int kPastRows = 64;
constexpr double kOtherDevice = 3; // remembered times that are off by more say nothing about today's device

// The fastest of some runs, and at least one.
template <typename Work> double fastest(int n_runs, const Work & work) {
    double best = std::numeric_limits<double>::max();
    for (int i = 0; i < n_runs; ++i) {
        const int64_t before = now_us();
        work();
        best = std::min(best, us_since(before));
    }
    return best;
}

// A star of rows, or a chain.
Tree some_tree(int n_rows, bool is_chain, int64_t n_vocab) {
    std::vector<int32_t> tokens(static_cast<size_t>(n_rows));
    std::vector<int32_t> parents(static_cast<size_t>(n_rows), 0);
    for (int i = 0; i < n_rows; ++i) {
        tokens[static_cast<size_t>(i)] = i % static_cast<int32_t>(n_vocab);
        parents[static_cast<size_t>(i)] = is_chain || i == 0 ? i - 1 : 0;
    }
    return make_tree(tokens, parents);
}

int candidates(const Passes & passes) {
    return std::min<int>(kCandidates, static_cast<int>(passes.target().n_vocab()));
}

// Of a step that drafts nothing, after n_past rows.
double time_plain_step(Passes & passes, bool has_draft, int n_past, int n_runs) {
    return fastest(n_runs, [&] {
        if (has_draft) {
            passes.append_keeping(0, n_past, 0);
        } else {
            passes.append({0}, n_past, true, false);
        }
        passes.argmax();
    });
}

// Whether what is remembered is of such a device; then it is scaled to today's speed, else forgotten.
bool keep_remembered(Tuner & tuner, double plain_us) {
    const double factor = plain_us / tuner.times().verify_us(1);
    if (factor < kOtherDevice && factor > 1 / kOtherDevice) {
        tuner.times().scale(factor);
        return true;
    }
    tuner.forget_device(); // all of it: sizes that are not measured below would keep the other device's times
    return false;
}

} // namespace

std::vector<int> block_choices(const Draft & draft) {
    const int trained = draft.config().block_size;
    std::vector<int> blocks = {trained};
    while (blocks.front() >= 8 && blocks.size() < 3) {
        blocks.insert(blocks.begin(), blocks.front() / 2);
    }
    return blocks;
}

void measure_at_load(Passes & passes, const Draft * draft, Tuner & tuner, bool is_remembered) {
    const int64_t start = now_us();
    const int n_past = std::min(kPastRows, passes.shape().context_tokens - 1);
    const bool has_draft = draft != nullptr;
    const int n_runs = passes.target().device().is_cpu ? 2 : 4; // GPUs try a graph, capture it, and only then are as fast as they get
    for (int at = 0, n = 0; at < n_past; at += n) { // a pass has the rows of a chunk at most
        n = std::min(passes.shape().prefill_chunk, n_past - at);
        passes.append(std::vector<int32_t>(static_cast<size_t>(n), 0), at, false, has_draft);
    }
    const double plain_us = time_plain_step(passes, has_draft, n_past, n_runs);
    StepTimes & times = tuner.times();
    is_remembered = is_remembered && keep_remembered(tuner, plain_us);
    if (!is_remembered) {
        times.set_verify_us(1, plain_us);
    }
    if (!draft) {
        return;
    }
    const int trained = draft->config().block_size;
    for (const int block : block_choices(*draft)) {
        if (block == trained || !is_remembered) {
            const double us = fastest(is_remembered ? 1 : n_runs, [&] { passes.draft_block(0, n_past, block, candidates(passes), nullptr); });
            if (!is_remembered) {
                times.set_draft_us(block, us);
            }
        }
    }
    const auto verify_us = [&](int n_rows, bool is_chain) {
        const Tree tree = some_tree(n_rows, is_chain, passes.target().n_vocab());
        return fastest(is_remembered ? 1 : n_runs, [&] {
            passes.verify(tree, n_past, true);
            passes.argmax();
            passes.commit({0, is_chain ? 1 : n_rows - 1}, n_past);
        });
    };
    const auto has_time = [&](int n_rows) { return n_rows <= passes.shape().max_rows && us_since(start) <= kMeasureUs; };
    if (passes.has_recurrent() && has_time(trained)) {
        const double us = verify_us(trained, true);
        if (!is_remembered) {
            times.set_chain_us(trained, us);
        }
    }
    if (is_remembered) {
        verify_us(std::min(4, passes.shape().max_rows), false);
        return;
    }
    for (const int n_rows : {4, 8, 2, 16, 32, 64}) {
        if (!has_time(n_rows)) {
            break;
        }
        times.set_verify_us(n_rows, verify_us(n_rows, false));
    }
}

double measure_here(Passes & passes, const Draft & draft, StepTimes & times, int32_t root, int n_past, double budget_us) {
    const int64_t start = now_us();
    const int block = draft.config().block_size;
    const int n_runs = passes.target().device().is_cpu ? 1 : 3;
    const auto has_time = [&](double expected_us) { return us_since(start) + n_runs * expected_us <= budget_us; };
    if (has_time(times.draft_us(block))) {
        times.learn_draft(block, fastest(n_runs, [&] { passes.draft_block(root, n_past, block, candidates(passes), nullptr); }));
    }
    for (const int n_rows : {8, 4, 16}) {
        if (n_rows > passes.shape().max_rows || n_past + n_rows > passes.shape().context_tokens || !has_time(times.verify_us(n_rows))) {
            continue;
        }
        const Tree tree = some_tree(n_rows, false, passes.target().n_vocab());
        times.learn_verify(n_rows, fastest(n_runs, [&] {
                               passes.verify(tree, n_past, true);
                               passes.argmax();
                           }));
    }
    return us_since(start);
}

} // namespace dflash
