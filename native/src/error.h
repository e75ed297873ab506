// The one exception type of the engine: a status of dflash.h and a sentence for the person.
#pragma once

#include <cstdarg>
#include <cstdio>
#include <stdexcept>
#include <string>

#include "dflash.h"

namespace dflash {

class Error : public std::runtime_error {
  public:
    Error(dflash_status status, const std::string & message) : std::runtime_error(message), status_(status) {}
    dflash_status status() const { return status_; }

  private:
    dflash_status status_;
};

// printf into a string; for messages that name file, field and value.
#if defined(__MINGW32__) && !defined(__clang__)
__attribute__((format(gnu_printf, 1, 2))) // its plain printf means Microsoft's, which has no %zu; the library's has
#elif defined(__GNUC__)
__attribute__((format(printf, 1, 2)))
#endif
inline std::string format(const char * pattern, ...) {
    va_list arguments;
    va_start(arguments, pattern);
    va_list copy;
    va_copy(copy, arguments);
    const int n = std::vsnprintf(nullptr, 0, pattern, copy);
    va_end(copy);
    std::string text(n > 0 ? static_cast<size_t>(n) : 0, '\0');
    if (n > 0) {
        std::vsnprintf(&text[0], text.size() + 1, pattern, arguments);
    }
    va_end(arguments);
    return text;
}

} // namespace dflash
