// How much a text repeats itself: whether its next token is the one that followed the same two tokens last time. Costs
// nothing beside a step, and where it is often right a draft mostly is, too. Standard library only.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

namespace dflash {

class Repetition {
  public:
    // Another text, of which so much is there already.
    void begin(const std::vector<int32_t> & tokens);
    // The text goes on.
    void add(const std::vector<int32_t> & tokens);
    // Share of the last tokens, about eight, that repeated what was there before: 0 to 1.
    double share() const { return share_; }

  private:
    void add(int32_t token, double weight);

    std::unordered_map<uint64_t, int32_t> next_; // two tokens -> what came after them
    int32_t last_ = -1, before_ = -1;
    double share_ = 0;
};

} // namespace dflash
