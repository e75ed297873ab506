// Reading back numbers that were remembered outside: every one is checked before it is believed. Standard library only.
#pragma once

#include <cmath>
#include <cstddef>
#include <vector>

namespace dflash {

class NumberReader {
  public:
    // Reads from `at`, which moves along.
    NumberReader(const std::vector<double> & values, size_t & at) : values_(values), at_(at) {}

    // The next number, when it is finite and lies in [low, high].
    bool take(double & out, double low, double high) {
        if (at_ >= values_.size()) {
            return false;
        }
        const double value = values_[at_++];
        if (!std::isfinite(value) || value < low || value > high) {
            return false;
        }
        out = value;
        return true;
    }
    // A whole one.
    bool take(int & out, int low, int high) {
        double value = 0;
        if (!take(value, static_cast<double>(low), static_cast<double>(high)) || value != std::floor(value)) {
            return false;
        }
        out = static_cast<int>(value);
        return true;
    }
    bool take_flag(bool & out) {
        int value = 0;
        if (!take(value, 0, 1)) {
            return false;
        }
        out = value == 1;
        return true;
    }
    bool is(double expected) {
        double value = 0;
        return take(value, expected, expected);
    }

  private:
    const std::vector<double> & values_;
    size_t & at_;
};

} // namespace dflash
