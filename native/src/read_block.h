// From the results of a draft pass, on the host, to the candidates of each drafted position, best first.
#pragma once

#include <vector>

#include "draft_heads.h"
#include "tree.h"

namespace dflash {

// What a computed pass found. `results` has the data of pass.results. A confidence head lowers the probabilities of the
// positions it doubts, so that the tree, or whoever chooses its size, leaves them out.
Marginals read_block(const DraftPass & pass, const std::vector<const void *> & results);

// The first `k` candidates of each depth, without conditionals; missing ones are token 0, log-probability -infinity.
Marginals first_candidates(const Marginals & marginals, int k);

} // namespace dflash
