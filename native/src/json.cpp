// Recursive descent over the text; depth and number of values are bounded, so a hostile file costs no more than its size.

#include "json.h"

#include <limits>
#include <locale>
#include <set>
#include <sstream>
#include <stdexcept>

#include "model_text.h"

namespace dflash {
namespace {

constexpr int kMaxDepth = 64;
constexpr size_t kMaxValues = 262144;

class Parser {
  public:
    explicit Parser(std::string_view text) : text_(text) {}

    Json parse() {
        Json value = read_value(0);
        skip_space();
        if (at_ != text_.size()) {
            refuse("more text after the end of the value");
        }
        return value;
    }

  private:
    [[noreturn]] void refuse(const std::string & why) const { throw std::runtime_error("byte " + std::to_string(at_) + ": " + why); }

    char peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }

    void skip_space() {
        while (peek() == ' ' || peek() == '\t' || peek() == '\n' || peek() == '\r') {
            ++at_;
        }
    }

    bool take(std::string_view word) {
        if (text_.substr(at_, word.size()) != word) {
            return false;
        }
        at_ += word.size();
        return true;
    }

    Json read_value(int depth) {
        if (depth > kMaxDepth) {
            refuse("nested deeper than " + std::to_string(kMaxDepth) + " levels");
        }
        if (++n_values_ > kMaxValues) {
            refuse("more than " + std::to_string(kMaxValues) + " values");
        }
        skip_space();
        Json value;
        const char c = peek();
        if (c == '{') {
            read_object(value, depth);
        } else if (c == '[') {
            read_array(value, depth);
        } else if (c == '"') {
            value.kind = Json::Kind::kString;
            value.string = read_string();
        } else if (c == 't' || c == 'f') {
            value.kind = Json::Kind::kBoolean;
            value.boolean = c == 't';
            if (!take(value.boolean ? "true" : "false")) {
                refuse("a value is expected");
            }
        } else if (!take("null")) {
            read_number(value);
        }
        return value;
    }

    void read_object(Json & value, int depth) {
        value.kind = Json::Kind::kObject;
        std::set<std::string> names;
        ++at_;
        skip_space();
        if (take("}")) {
            return;
        }
        do {
            skip_space();
            std::string name = read_string();
            if (!names.insert(name).second) {
                refuse("'" + printable(name) + "' occurs twice");
            }
            skip_space();
            if (!take(":")) {
                refuse("':' is expected");
            }
            value.members.emplace_back(std::move(name), read_value(depth + 1));
            skip_space();
        } while (take(","));
        if (!take("}")) {
            refuse("',' or '}' is expected");
        }
    }

    void read_array(Json & value, int depth) {
        value.kind = Json::Kind::kArray;
        ++at_;
        skip_space();
        if (take("]")) {
            return;
        }
        do {
            value.items.push_back(read_value(depth + 1));
            skip_space();
        } while (take(","));
        if (!take("]")) {
            refuse("',' or ']' is expected");
        }
    }

    void read_number(Json & value) {
        value.kind = Json::Kind::kReal;
        if (take("NaN")) {
            value.real = std::numeric_limits<double>::quiet_NaN();
            return;
        }
        const size_t begin = at_;
        const bool is_negative = take("-");
        if (take("Infinity")) {
            value.real = is_negative ? -std::numeric_limits<double>::infinity() : std::numeric_limits<double>::infinity();
            return;
        }
        const auto skip_digits = [&] {
            const size_t first = at_;
            while (peek() >= '0' && peek() <= '9') {
                ++at_;
            }
            return at_ - first;
        };
        const bool is_zero = peek() == '0';
        const size_t n_digits = skip_digits();
        if (n_digits == 0 || (is_zero && n_digits > 1)) {
            refuse("a value is expected");
        }
        bool is_whole = true;
        if (take(".")) {
            is_whole = false;
            if (skip_digits() == 0) {
                refuse("digits are expected after the point");
            }
        }
        if (peek() == 'e' || peek() == 'E') {
            is_whole = false;
            ++at_;
            if (!take("+")) {
                take("-");
            }
            if (skip_digits() == 0) {
                refuse("digits are expected in the exponent");
            }
        }
        const std::string_view digits = text_.substr(begin, at_ - begin);
        if (digits.size() > 100) {
            refuse("a number of more than 100 characters");
        }
        set_number(value, digits, is_whole);
    }

    void set_number(Json & value, std::string_view digits, bool is_whole) const {
        std::istringstream stream{std::string(digits)};
        stream.imbue(std::locale::classic());
        if (is_whole) {
            stream >> value.integer;
            if (!stream.fail()) {
                value.kind = Json::Kind::kInteger;
                value.real = static_cast<double>(value.integer);
                return;
            }
            value.integer = 0;
            stream.clear();
            stream.seekg(0);
        }
        stream >> value.real;
        if (stream.fail()) {
            refuse("a number that is too large");
        }
    }

    std::string read_string() {
        if (!take("\"")) {
            refuse("a string is expected");
        }
        std::string out;
        while (true) {
            const size_t begin = at_;
            while (at_ < text_.size() && text_[at_] != '"' && text_[at_] != '\\' && static_cast<unsigned char>(text_[at_]) >= 0x20) {
                ++at_;
            }
            out.append(text_.substr(begin, at_ - begin));
            if (take("\"")) {
                break;
            }
            if (!take("\\")) {
                refuse(at_ == text_.size() ? "the text ends inside a string" : "a control character inside a string");
            }
            read_escape(out);
        }
        if (!is_plain_utf8(out)) {
            refuse("a string that is not UTF-8 text");
        }
        return out;
    }

    void read_escape(std::string & out) {
        static const std::string_view kLetters = "\"\\/bfnrt";
        static const std::string_view kMeanings = "\"\\/\b\f\n\r\t";
        const size_t letter = at_ < text_.size() ? kLetters.find(text_[at_]) : std::string_view::npos;
        if (letter != std::string_view::npos) {
            out += kMeanings[letter];
            ++at_;
            return;
        }
        unsigned code = read_hex();
        if (code >= 0xd800 && code < 0xdc00) { // first half of a pair; an unpaired half is refused as not UTF-8
            const size_t begin = at_;
            const unsigned low = peek() == '\\' ? (++at_, read_hex()) : 0;
            if (low >= 0xdc00 && low < 0xe000) {
                code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
            } else {
                at_ = begin;
                refuse("half of a surrogate pair");
            }
        }
        append_utf8(out, code);
    }

    unsigned read_hex() {
        if (!take("u") || at_ + 4 > text_.size()) {
            refuse("an unknown escape");
        }
        unsigned code = 0;
        for (int i = 0; i < 4; ++i) {
            const char c = text_[at_++];
            const int digit = c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
            if (digit < 0) {
                refuse("an unknown escape");
            }
            code = code * 16 + static_cast<unsigned>(digit);
        }
        return code;
    }

    static void append_utf8(std::string & out, unsigned code) {
        const auto add = [&](unsigned byte) { out += static_cast<char>(static_cast<unsigned char>(byte)); };
        if (code < 0x80) {
            add(code);
        } else if (code < 0x800) {
            add(0xc0 | (code >> 6));
            add(0x80 | (code & 0x3f));
        } else if (code < 0x10000) {
            add(0xe0 | (code >> 12));
            add(0x80 | ((code >> 6) & 0x3f));
            add(0x80 | (code & 0x3f));
        } else {
            add(0xf0 | (code >> 18));
            add(0x80 | ((code >> 12) & 0x3f));
            add(0x80 | ((code >> 6) & 0x3f));
            add(0x80 | (code & 0x3f));
        }
    }

    std::string_view text_;
    size_t at_ = 0; // never above the text's size
    size_t n_values_ = 0;
};

} // namespace

const Json * Json::find(std::string_view name) const {
    for (const auto & member : members) {
        if (member.first == name) {
            return &member.second;
        }
    }
    return nullptr;
}

Json parse_json(std::string_view text) {
    return Parser(text).parse();
}

} // namespace dflash
