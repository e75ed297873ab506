// Repetition in a text; see repetition.h.
#include "repetition.h"

namespace dflash {
namespace {

constexpr double kWeight = 1.0 / 8;

} // namespace

void Repetition::begin(const std::vector<int32_t> & tokens) {
    next_.clear();
    last_ = before_ = -1;
    share_ = 0;
    for (const int32_t token : tokens) {
        add(token, 0); // a prompt's own repetitions say nothing about the reply's
    }
}

void Repetition::add(const std::vector<int32_t> & tokens) {
    for (const int32_t token : tokens) {
        add(token, kWeight);
    }
}

void Repetition::add(int32_t token, double weight) {
    if (before_ >= 0) {
        const uint64_t key = static_cast<uint64_t>(static_cast<uint32_t>(before_)) << 32 | static_cast<uint32_t>(last_);
        const auto found = next_.find(key);
        const bool is_repeated = found != next_.end() && found->second == token;
        share_ += weight * ((is_repeated ? 1.0 : 0.0) - share_);
        next_[key] = token;
    }
    before_ = last_;
    last_ = token;
}

} // namespace dflash
