// Text for messages. No function of the C library that looks at the locale is used.

#include "model_text.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <locale>
#include <sstream>

namespace dflash {

std::string file_name(const std::string & path) {
#if defined(_WIN32)
    const size_t slash = path.find_last_of("/\\");
#else
    const size_t slash = path.find_last_of('/');
#endif
    return slash == std::string::npos ? path : path.substr(slash + 1);
}

bool is_plain_utf8(std::string_view text) {
    const auto * s = reinterpret_cast<const unsigned char *>(text.data());
    const size_t n = text.size();
    for (size_t i = 0; i < n;) {
        const unsigned char c = s[i];
        size_t length = 0;
        unsigned code = 0;
        if (c > 0 && c < 0x80) {
            ++i;
            continue;
        }
        if (c >= 0xc2 && c < 0xe0) {
            length = 2;
            code = c & 0x1fu;
        } else if (c >= 0xe0 && c < 0xf0) {
            length = 3;
            code = c & 0x0fu;
        } else if (c >= 0xf0 && c < 0xf5) {
            length = 4;
            code = c & 0x07u;
        } else {
            return false;
        }
        if (length > n - i) {
            return false;
        }
        for (size_t k = 1; k < length; ++k) {
            if ((s[i + k] & 0xc0u) != 0x80u) {
                return false;
            }
            code = (code << 6) | (s[i + k] & 0x3fu);
        }
        const bool is_overlong = (length == 3 && code < 0x800) || (length == 4 && code < 0x10000);
        if (is_overlong || code > 0x10ffff || (code >= 0xd800 && code < 0xe000)) {
            return false;
        }
        i += length;
    }
    return true;
}

std::string printable(std::string_view text) {
    constexpr size_t kMost = 80;
    std::string out(text.substr(0, kMost));
    for (char & c : out) {
        if (c < 0x20 || c > 0x7e) {
            c = '?';
        }
    }
    return text.size() > kMost ? out + "..." : out;
}

std::string number_text(double value) {
    if (std::isnan(value)) {
        return "nan";
    }
    if (std::isinf(value)) {
        return value > 0 ? "inf" : "-inf";
    }
    std::ostringstream stream;
    stream.imbue(std::locale::classic());
    stream.precision(9);
    stream << value;
    return stream.str();
}

std::string shape_text(const int64_t * ne, int n) {
    while (n > 1 && ne[n - 1] == 1) {
        --n;
    }
    std::string text = "[";
    for (int i = 0; i < n; ++i) {
        text += (i > 0 ? ", " : "") + std::to_string(ne[i]);
    }
    return text + "]";
}

std::string memory_text(uint64_t n_bytes) {
    constexpr uint64_t kGib = uint64_t{1} << 30;
    constexpr uint64_t kMib = uint64_t{1} << 20;
    const uint64_t unit = n_bytes >= kGib ? kGib : n_bytes >= kMib ? kMib : uint64_t{1} << 10;
    const uint64_t tenths = n_bytes / unit * 10 + (n_bytes % unit * 10 + unit / 2) / unit;
    return std::to_string(tenths / 10) + "." + std::to_string(tenths % 10) + (unit == kGib ? " GiB" : unit == kMib ? " MiB" : " KiB");
}

void copy_text(char * out, size_t capacity, const std::string & text) {
    size_t n = std::min(text.size(), capacity - 1);
    while (n > 0 && n < text.size() && (static_cast<unsigned char>(text[n]) & 0xC0u) == 0x80u) {
        --n;
    }
    std::memcpy(out, text.data(), n);
    out[n] = '\0';
}

} // namespace dflash
