// Times the passes of a session: at load, and again where the context has grown much.
#pragma once

#include "passes.h"
#include "tuner.h"

namespace dflash {

constexpr int kCandidates = 8; // per drafted position: a node of rank r costs at least r siblings

// Block sizes worth a choice with this draft, ascending: few, because each has to be tried now and then.
std::vector<int> block_choices(const Draft & draft);

// Run every kind of pass once before "loaded" is said, and give the tuner its first times. What it remembers of an earlier
// load is only checked; most of the measuring is then left out. Leaves the timeline in disorder.
void measure_at_load(Passes & passes, const Draft * draft, Tuner & tuner, bool is_remembered);

// Time a draft and a few verifies after `n_past` rows, where `root` stands, as long as they are expected to fit into
// `budget_us`. Nothing is committed. Returns the microseconds spent.
double measure_here(Passes & passes, const Draft & draft, StepTimes & times, int32_t root, int n_past, double budget_us);

} // namespace dflash
