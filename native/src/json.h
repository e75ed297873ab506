// A small JSON reader for the headers and configs of model files: hostile until parsed, bounded, and deaf to the locale.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace dflash {

struct Json {
    enum class Kind { kNull, kBoolean, kInteger, kReal, kString, kArray, kObject };
    Kind kind = Kind::kNull;
    bool boolean = false;
    int64_t integer = 0; // kInteger: no fraction, no exponent, fits
    double real = 0;     // kInteger and kReal; NaN and Infinity, which Python writes, are read
    std::string string;  // UTF-8 without NUL
    std::vector<Json> items;
    std::vector<std::pair<std::string, Json>> members; // names differ

    const Json * find(std::string_view name) const; // nullptr when absent, and in everything but objects
};

// Throws std::runtime_error saying what is wrong at which byte. At most 64 levels and 262,144 values.
Json parse_json(std::string_view text);

} // namespace dflash
