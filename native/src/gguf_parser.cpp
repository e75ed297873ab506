// Every number in the file is hostile until it has been compared with what is left of the file: no count is allocated, no
// sum is formed and no offset is followed before that.

#include "gguf_parser.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <set>
#include <utility>

#include "model_text.h"

namespace dflash {
namespace {

constexpr uint64_t kDefaultAlignment = 32;
constexpr uint64_t kMinAlignment = 8; // the format's own rule
constexpr uint64_t kMaxAlignment = 65536;
constexpr uint64_t kMaxKeys = 65536;
constexpr uint64_t kMaxTensors = 1048576;
constexpr uint64_t kMaxKeyBytes = 65535;
constexpr uint64_t kMaxInt64 = static_cast<uint64_t>(std::numeric_limits<int64_t>::max());

enum class Type : uint32_t {
    kU8 = 0,
    kI8 = 1,
    kU16 = 2,
    kI16 = 3,
    kU32 = 4,
    kI32 = 5,
    kF32 = 6,
    kBool = 7,
    kString = 8,
    kArray = 9,
    kU64 = 10,
    kI64 = 11,
    kF64 = 12
};

// Bytes of one value; 0 for strings, arrays and unknown types.
int bytes_of(uint32_t type) {
    static const int kBytes[] = {1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};
    return type <= static_cast<uint32_t>(Type::kF64) ? kBytes[type] : 0;
}

bool is_signed(Type type) {
    return type == Type::kI8 || type == Type::kI16 || type == Type::kI32 || type == Type::kI64;
}

bool is_real(Type type) {
    return type == Type::kF32 || type == Type::kF64;
}

std::string text(uint64_t number) {
    return std::to_string(number);
}

template <typename T> T little(const uint8_t * data) {
    T value;
    std::memcpy(&value, data, sizeof(T)); // all our systems are little-endian; gguf does not align its values
    return value;
}

class Parser {
  public:
    Parser(std::string label, const Mapping & mapping) : label_(std::move(label)), data_(mapping.data()), size_(mapping.size()) {}

    GgufPart parse() {
        GgufPart part;
        const auto [n_tensors, n_keys] = read_header();
        for (uint64_t i = 0; i < n_keys; ++i) {
            read_key(i, n_keys, part.values);
        }
        const uint64_t alignment = read_alignment(part.values);
        std::vector<uint64_t> offsets;
        std::set<std::string> names;
        for (uint64_t i = 0; i < n_tensors; ++i) {
            part.tensors.push_back(read_tensor(i, n_tensors));
            offsets.push_back(number<uint64_t>("the tensor's offset"));
            if (!names.insert(part.tensors.back().name).second) {
                refuse("tensor '" + printable(part.tensors.back().name) + "': occurs twice");
            }
        }
        place(part.tensors, offsets, alignment);
        return part;
    }

  private:
    [[noreturn]] void refuse(const std::string & why) const { throw Error(DFLASH_BAD_FILE, label_ + ": " + why); }

    // `where_` tells which key or tensor is being read; it is only put into words when something is wrong.
    [[noreturn]] void refuse_end(const char * what, uint64_t n_bytes) const {
        refuse(where_ + ": " + what + " needs " + text(n_bytes) + " bytes at byte " + text(at_) + ", but the file ends after " + text(size_) +
               " bytes; it is incomplete or damaged");
    }

    uint64_t n_left() const { return size_ - at_; }

    void need(uint64_t n_bytes, const char * what) const {
        if (n_bytes > n_left()) {
            refuse_end(what, n_bytes);
        }
    }

    template <typename T> T number(const char * what) {
        need(sizeof(T), what);
        const T value = little<T>(data_ + at_);
        at_ += sizeof(T);
        return value;
    }

    std::string_view string(const char * what) {
        const uint64_t n_bytes = number<uint64_t>(what);
        need(n_bytes, what);
        const std::string_view bytes(reinterpret_cast<const char *>(data_ + at_), static_cast<size_t>(n_bytes));
        at_ += n_bytes;
        return bytes;
    }

    // Counts of tensors and keys.
    std::pair<uint64_t, uint64_t> read_header() {
        where_ = "header";
        at_ = 4; // the magic, checked by GgufReader::is_gguf
        const auto version = number<uint32_t>("the version");
        if (version != 0 && (version & 0xffffu) == 0) {
            refuse("version: " + text(version) + ": the file is big-endian; convert it to little-endian");
        }
        if (version < 2) {
            refuse("version: " + text(version) + " is too old; versions 2 and 3 can be read");
        }
        if (version > 3) {
            refuse("version: " + text(version) + " is newer than this program understands (2 and 3)");
        }
        const auto n_tensors = number<uint64_t>("the tensor count");
        const auto n_keys = number<uint64_t>("the key count");
        check_count("tensor count", n_tensors, kMaxTensors, 8 + 1 + 4 + 8 + 4 + 8);
        check_count("key count", n_keys, kMaxKeys, 8 + 1 + 4 + 1);
        return {n_tensors, n_keys};
    }

    void check_count(const char * field, uint64_t count, uint64_t most, uint64_t min_bytes_each) const {
        if (count > most || count > n_left() / min_bytes_each) {
            refuse(std::string(field) + ": " + text(count) + " is impossible in a file of " + text(size_) + " bytes; it is incomplete or damaged");
        }
    }

    void read_key(uint64_t i, uint64_t n_keys, std::map<std::string, Value> & values) {
        where_ = "key " + text(i + 1) + " of " + text(n_keys);
        const std::string_view key = string("its name");
        if (key.empty() || key.size() > kMaxKeyBytes) {
            refuse(where_ + ": a name of " + text(key.size()) + " bytes; 1 to " + text(kMaxKeyBytes) + " are allowed");
        }
        where_ = printable(key);
        if (!is_plain_utf8(key)) {
            refuse(where_ + ": the key is not text");
        }
        Value value = read_value();
        if (!values.emplace(std::string(key), std::move(value)).second) {
            refuse(where_ + ": the key occurs twice");
        }
    }

    Value read_value() {
        const auto type = number<uint32_t>("the value's type");
        if (type == static_cast<uint32_t>(Type::kArray)) {
            return read_array();
        }
        if (type == static_cast<uint32_t>(Type::kString)) {
            Value value;
            value.kind = DFLASH_VALUE_STRING;
            const std::string_view bytes = string("the text");
            value.count = value.n_bytes = bytes.size();
            value.data = reinterpret_cast<const uint8_t *>(bytes.data());
            return value;
        }
        if (bytes_of(type) == 0) {
            refuse(where_ + ": unknown value type " + text(type));
        }
        Value value = read_numbers(static_cast<Type>(type), 1, false);
        if (value.kind == DFLASH_VALUE_REAL) {
            value.real = value.real_at(0);
        } else {
            value.integer = value.integer_at(0);
        }
        return value;
    }

    Value read_array() {
        const auto type = number<uint32_t>("the element type");
        const auto count = number<uint64_t>("the element count");
        if (type == static_cast<uint32_t>(Type::kArray)) {
            refuse(where_ + ": an array of arrays; these cannot be read");
        }
        if (type == static_cast<uint32_t>(Type::kString)) {
            return read_strings(count);
        }
        if (bytes_of(type) == 0) {
            refuse(where_ + ": unknown element type " + text(type));
        }
        return read_numbers(static_cast<Type>(type), count, true);
    }

    void check_elements(uint64_t count, uint64_t min_bytes_each) const {
        if (count > n_left() / min_bytes_each) {
            refuse(where_ + ": " + text(count) + " elements at byte " + text(at_) + " do not fit into a file of " + text(size_) +
                   " bytes; it is incomplete or damaged");
        }
    }

    Value read_strings(uint64_t count) {
        check_elements(count, 8);
        Value value;
        value.kind = DFLASH_VALUE_STRINGS;
        value.count = count;
        value.data = data_ + at_;
        const uint64_t begin = at_;
        for (uint64_t i = 0; i < count; ++i) {
            string("an element");
        }
        value.n_bytes = at_ - begin;
        return value;
    }

    Value read_numbers(Type type, uint64_t count, bool is_array) {
        const int element_bytes = bytes_of(static_cast<uint32_t>(type));
        check_elements(count, static_cast<uint64_t>(element_bytes));
        Value value;
        value.count = count;
        value.data = data_ + at_;
        value.element_bytes = element_bytes;
        value.n_bytes = count * static_cast<uint64_t>(element_bytes);
        value.is_signed = is_signed(type);
        at_ += value.n_bytes;
        if (is_real(type)) {
            value.kind = is_array ? DFLASH_VALUE_REALS : DFLASH_VALUE_REAL;
        } else if (type == Type::kBool) {
            value.kind = is_array ? DFLASH_VALUE_BOOLEANS : DFLASH_VALUE_BOOLEAN;
            for (uint64_t i = 0; i < count; ++i) {
                if (value.data[i] > 1) {
                    refuse(where_ + ": " + text(value.data[i]) + " is neither true nor false");
                }
            }
        } else {
            value.kind = is_array ? DFLASH_VALUE_INTEGERS : DFLASH_VALUE_INTEGER;
            for (uint64_t i = 0; type == Type::kU64 && i < count; ++i) {
                const auto number = little<uint64_t>(value.data + 8 * i);
                if (number > kMaxInt64) {
                    refuse(where_ + ": " + text(number) + " is too large");
                }
            }
        }
        return value;
    }

    uint64_t read_alignment(const std::map<std::string, Value> & values) const {
        const auto found = values.find("general.alignment");
        if (found == values.end()) {
            return kDefaultAlignment;
        }
        const Value & value = found->second;
        if (value.kind != DFLASH_VALUE_INTEGER) {
            refuse("general.alignment: is not a whole number");
        }
        const int64_t alignment = value.integer;
        if (alignment < static_cast<int64_t>(kMinAlignment) || alignment > static_cast<int64_t>(kMaxAlignment) || (alignment & (alignment - 1)) != 0) {
            refuse("general.alignment: " + std::to_string(alignment) + " is not a power of two from " + text(kMinAlignment) + " to " + text(kMaxAlignment));
        }
        return static_cast<uint64_t>(alignment);
    }

    // Everything but the offset, which follows.
    TensorInfo read_tensor(uint64_t i, uint64_t n_tensors) {
        where_ = "tensor " + text(i + 1) + " of " + text(n_tensors);
        TensorInfo tensor;
        const std::string_view name = string("its name");
        if (name.empty() || name.size() >= GGML_MAX_NAME) {
            refuse(where_ + ": a name of " + text(name.size()) + " bytes; 1 to " + text(GGML_MAX_NAME - 1) + " are allowed");
        }
        where_ = "tensor '" + printable(name) + "'";
        if (!is_plain_utf8(name)) {
            refuse(where_ + ": the name is not text");
        }
        tensor.name = std::string(name);
        const auto n_dims = number<uint32_t>("the dimension count");
        if (n_dims < 1 || n_dims > GGML_MAX_DIMS) {
            refuse(where_ + ": " + text(n_dims) + " dimensions; 1 to " + text(GGML_MAX_DIMS) + " are allowed");
        }
        tensor.n_dims = static_cast<int>(n_dims);
        for (uint32_t d = 0; d < n_dims; ++d) {
            const auto length = number<uint64_t>("a dimension");
            if (length == 0 || length > kMaxInt64) {
                refuse(where_ + ": dimension " + text(d) + " is " + text(length));
            }
            tensor.ne[d] = static_cast<int64_t>(length);
        }
        set_type(tensor, number<uint32_t>("the type"));
        return tensor;
    }

    void set_type(TensorInfo & tensor, uint32_t type) const {
        // The ids of removed types have no block size.
        if (type >= GGML_TYPE_COUNT || ggml_blck_size(static_cast<ggml_type>(type)) <= 0 || ggml_type_size(static_cast<ggml_type>(type)) == 0) {
            refuse(where_ + ": type " + text(type) + " is unknown or no longer in use");
        }
        tensor.type = static_cast<ggml_type>(type);
        const int64_t block = ggml_blck_size(tensor.type);
        if (tensor.ne[0] % block != 0) {
            refuse(where_ + ": rows of " + std::to_string(tensor.ne[0]) + " values cannot be of type " + ggml_type_name(tensor.type) +
                   ", which holds blocks of " + std::to_string(block));
        }
        // A product of up to five numbers; kMaxInt64 bounds elements and bytes alike.
        uint64_t n_bytes = static_cast<uint64_t>(ggml_type_size(tensor.type));
        uint64_t n_values = 1;
        for (int d = 0; d < GGML_MAX_DIMS; ++d) {
            const auto length = static_cast<uint64_t>(tensor.ne[d]);
            const uint64_t n_blocks = d == 0 ? length / static_cast<uint64_t>(block) : length;
            if (n_blocks > kMaxInt64 / n_bytes || length > kMaxInt64 / n_values) {
                refuse(where_ + ": the shape " + shape_text(tensor.ne, GGML_MAX_DIMS) + " is too large");
            }
            n_bytes *= n_blocks;
            n_values *= length;
        }
        tensor.n_bytes = n_bytes;
    }

    // Check where each tensor lies and point it there.
    void place(std::vector<TensorInfo> & tensors, const std::vector<uint64_t> & offsets, uint64_t alignment) const {
        const uint64_t begin = (at_ + alignment - 1) / alignment * alignment; // at_ <= size_, alignment <= 64 KiB
        uint64_t expected = 0;
        for (size_t i = 0; i < tensors.size(); ++i) {
            const TensorInfo & tensor = tensors[i];
            if (offsets[i] % alignment != 0) {
                refuse("tensor '" + printable(tensor.name) + "': offset " + text(offsets[i]) + " is not a multiple of the alignment " + text(alignment));
            }
            if (offsets[i] > kMaxInt64 - begin || tensor.n_bytes > kMaxInt64 - begin - offsets[i]) {
                refuse("tensor '" + printable(tensor.name) + "': offset " + text(offsets[i]) + " is impossible");
            }
            expected = std::max(expected, begin + offsets[i] + tensor.n_bytes);
        }
        std::vector<size_t> order(tensors.size());
        for (size_t i = 0; i < order.size(); ++i) {
            order[i] = i;
        }
        std::sort(order.begin(), order.end(), [&](size_t a, size_t b) { return offsets[a] < offsets[b]; });
        for (size_t k = 0; k < order.size(); ++k) {
            TensorInfo & tensor = tensors[order[k]];
            const uint64_t offset = begin + offsets[order[k]];
            if (offset + tensor.n_bytes > size_) {
                refuse("tensor '" + printable(tensor.name) + "': ends at byte " + text(offset + tensor.n_bytes) + ", but the file has " + text(size_) +
                       " bytes of an expected " + text(expected) + "; it is incomplete");
            }
            if (k > 0) {
                const TensorInfo & before = tensors[order[k - 1]];
                if (offsets[order[k]] - offsets[order[k - 1]] < before.n_bytes) {
                    refuse("tensor '" + printable(tensor.name) + "': overlaps tensor '" + printable(before.name) + "'");
                }
            }
            tensor.data = data_ + offset;
        }
    }

    std::string label_;
    const uint8_t * data_;
    uint64_t size_;
    uint64_t at_ = 0; // never above size_
    std::string where_;
};

} // namespace

GgufPart parse_gguf(const std::string & label, const Mapping & mapping) {
    return Parser(label, mapping).parse();
}

} // namespace dflash
