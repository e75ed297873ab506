// Following the machine's load; see thread_count.h.
#include "thread_count.h"

#include <algorithm>

namespace dflash {

bool ThreadCount::observe(double wall_us, double cpu_us) {
    constexpr double kWindowUs = 50e3;
    constexpr double kFirstRetryUs = 1e6;
    constexpr double kLastRetryUs = 64e6;
    constexpr double kStarved = 0.75;
    constexpr double kFed = 0.95;
    wall_us_ += wall_us;
    cpu_us_ += cpu_us;
    if (wall_us_ < kWindowUs) {
        return false;
    }
    const double share = cpu_us_ / (wall_us_ * count_);
    since_change_us_ += wall_us_;
    wall_us_ = cpu_us_ = 0;
    const int before = count_;
    if (share < kStarved && count_ > 1) {
        // A step up that did not hold is tried again later and later.
        retry_us_ = !is_last_up_ ? retry_us_ : since_change_us_ < retry_us_ ? std::min(2 * retry_us_, kLastRetryUs) : kFirstRetryUs;
        --count_;
    } else if (share >= kFed && count_ < most_ && since_change_us_ >= retry_us_) {
        ++count_;
    }
    if (count_ != before) {
        since_change_us_ = 0;
        is_last_up_ = count_ > before;
    }
    return count_ != before;
}

} // namespace dflash
