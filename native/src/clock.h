// Microseconds of a clock that only goes forward, for how long things take. Standard library only.
#pragma once

#include <chrono>
#include <cstdint>

namespace dflash {

inline int64_t now_us() {
    return std::chrono::duration_cast<std::chrono::microseconds>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

} // namespace dflash
