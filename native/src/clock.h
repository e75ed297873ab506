// Microseconds of a clock that only goes forward, for how long things take. Standard library only.
#pragma once

#include <chrono>
#include <cstdint>

namespace dflash {

inline int64_t now_us() {
    return std::chrono::duration_cast<std::chrono::microseconds>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

inline double us_since(int64_t start_us) {
    return static_cast<double>(now_us() - start_us);
}

} // namespace dflash
