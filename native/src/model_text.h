// Pieces of messages: names, numbers and strings, also out of hostile files, made fit to be read by a person.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace dflash {

// The last component of a UTF-8 path.
std::string file_name(const std::string & path);

// Whether `text` is UTF-8 without NUL.
bool is_plain_utf8(std::string_view text);

// `text` with everything unprintable or not ASCII replaced by '?', cut to 80 bytes.
std::string printable(std::string_view text);

// `value` with a point inside whatever the locale; "nan", "inf", "-inf".
std::string number_text(double value);

// "[2048, 4096]", trailing ones left out.
std::string shape_text(const int64_t * ne, int n);

// "93.8 MiB", "1.5 GiB".
std::string memory_text(uint64_t n_bytes);

// `text` into a fixed field with a NUL behind it, cut at a character and not inside one.
void copy_text(char * out, size_t capacity, const std::string & text);

} // namespace dflash
