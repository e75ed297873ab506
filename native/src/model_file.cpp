// Telling containers apart, and typed access to what a container's reader has checked.

#include "model_file.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "gguf_file.h"
#include "model_text.h"
#include "safetensors_file.h"

namespace dflash {

int64_t Value::integer_at(uint64_t i) const {
    const uint8_t * at = data + i * static_cast<uint64_t>(element_bytes);
    uint64_t bits = 0;
    for (int k = 0; k < element_bytes; ++k) {
        bits |= static_cast<uint64_t>(at[k]) << (8 * k);
    }
    if (is_signed && element_bytes < 8 && ((bits >> (8 * element_bytes - 1)) & 1u) != 0) {
        bits |= ~uint64_t{0} << (8 * element_bytes);
    }
    int64_t value = 0;
    std::memcpy(&value, &bits, sizeof(value));
    return value;
}

double Value::real_at(uint64_t i) const {
    const uint8_t * at = data + i * static_cast<uint64_t>(element_bytes);
    if (element_bytes == 4) {
        float value = 0;
        std::memcpy(&value, at, sizeof(value));
        return static_cast<double>(value);
    }
    double value = 0;
    std::memcpy(&value, at, sizeof(value));
    return value;
}

namespace {

const char * kind_text(dflash_value_kind kind) {
    switch (kind) {
        case DFLASH_VALUE_INTEGER: return "a whole number";
        case DFLASH_VALUE_REAL: return "a number with a fraction";
        case DFLASH_VALUE_BOOLEAN: return "true or false";
        case DFLASH_VALUE_STRING: return "text";
        case DFLASH_VALUE_INTEGERS: return "a list of whole numbers";
        case DFLASH_VALUE_REALS: return "a list of numbers with a fraction";
        case DFLASH_VALUE_BOOLEANS: return "a list of true and false";
        case DFLASH_VALUE_STRINGS: return "a list of texts";
    }
    return "something unknown";
}

[[noreturn]] void refuse_kind(const ModelFile & file, const std::string & key, const Value & value, dflash_value_kind expected) {
    file.refuse(key + ": is " + kind_text(value.kind) + ", expected " + kind_text(expected));
}

void check_range(const ModelFile & file, const std::string & key, int64_t value, int64_t low, int64_t high) {
    if (value < low || value > high) {
        file.refuse(
            format("%s: %lld is outside %lld..%lld", key.c_str(), static_cast<long long>(value), static_cast<long long>(low), static_cast<long long>(high)));
    }
}

// What a file that is not a model seems to be; "" when nothing comes to mind.
std::string guess_container(const Mapping & mapping) {
    const std::string_view text(reinterpret_cast<const char *>(mapping.data()), static_cast<size_t>(std::min<uint64_t>(mapping.size(), 512)));
    const auto starts = [&](std::string_view prefix) { return text.substr(0, prefix.size()) == prefix; };
    const size_t word = text.find_first_not_of(" \t\r\n");
    const char first = word == std::string_view::npos ? '\0' : text[word];

    if (starts("version https://git-lfs")) {
        return "it is a Git LFS pointer; the model itself was not downloaded";
    }
    if (first == '<') {
        return "it is a web page (HTML or XML); the download went wrong";
    }
    if (starts("PK\x03\x04")) {
        return "it is a zip archive or PyTorch checkpoint; a GGUF file is needed";
    }
    if (text.size() >= 2 && text[0] == '\x80' && text[1] >= 2 && text[1] <= 5) {
        return "it is a Python pickle or PyTorch checkpoint; a GGUF file is needed";
    }
    if (starts("tjgg") || starts("lmgg") || starts("fmgg") || starts("algg")) {
        return "it is a GGML file from before GGUF; convert it or download a GGUF";
    }
    if (starts("FUGG")) {
        return "it is a big-endian GGUF file; convert it to little-endian";
    }
    if (starts("\x1f\x8b") || starts("7z\xbc\xaf") || starts("(\xb5/\xfd") || starts("BZh") ||
        starts("\xfd"
               "7zXZ")) {
        return "it is a compressed archive; unpack it first";
    }
    if (starts("\x93NUMPY")) {
        return "it is a NumPy array";
    }
    if (first == '{' || first == '[') {
        return "it is JSON text; a GGUF file is needed";
    }
    if (text.find_first_not_of('\0') == std::string_view::npos) {
        return "it begins with zeros; the download did not finish";
    }
    return "";
}

} // namespace

std::shared_ptr<const ModelFile> ModelFile::open(const std::string & opened) {
    // A folder stands for the draft in it.
    const std::string path = is_folder(opened) && is_file(opened + "/model.safetensors") ? opened + "/model.safetensors" : opened;
    auto file = std::make_shared<ModelFile>();
    file->path_ = path;
    auto mapping = std::make_shared<const Mapping>(path);
    if (mapping->size() == 0) {
        file->refuse("the file is empty");
    }
    if (GgufReader::is_gguf(*mapping)) {
        GgufReader::read(path, std::move(mapping), *file);
    } else if (SafetensorsReader::is_safetensors(*mapping)) {
        SafetensorsReader::read(path, mapping, *file);
    } else {
        const std::string guess = guess_container(*mapping);
        file->refuse("magic: this is not a GGUF model file" + (guess.empty() ? std::string() : ": " + guess));
    }
    const Value * architecture = file->find("general.architecture");
    if (architecture != nullptr && architecture->kind == DFLASH_VALUE_STRING && is_plain_utf8(architecture->text())) {
        file->architecture_ = std::string(architecture->text());
    }
    return file;
}

std::string ModelFile::label() const {
    return file_name(path_);
}

uint64_t ModelFile::file_bytes() const {
    uint64_t n_bytes = 0;
    for (const auto & mapping : mappings_) {
        n_bytes += mapping->size();
    }
    return n_bytes;
}

const Value * ModelFile::find(const std::string & key) const {
    const auto found = values_.find(key);
    return found == values_.end() ? nullptr : &found->second;
}

const TensorInfo * ModelFile::tensor(const std::string & name) const {
    const auto found = tensor_index_.find(name);
    return found == tensor_index_.end() ? nullptr : &tensors_[found->second];
}

std::optional<int64_t> ModelFile::integer(const std::string & key, int64_t low, int64_t high) const {
    const Value * value = find(key);
    if (value == nullptr) {
        return std::nullopt;
    }
    if (value->kind != DFLASH_VALUE_INTEGER) {
        refuse_kind(*this, key, *value, DFLASH_VALUE_INTEGER);
    }
    check_range(*this, key, value->integer, low, high);
    return value->integer;
}

int64_t ModelFile::need_integer(const std::string & key, int64_t low, int64_t high) const {
    const auto value = integer(key, low, high);
    if (!value) {
        refuse(key + ": is missing");
    }
    return *value;
}

std::optional<double> ModelFile::real(const std::string & key, double low, double high) const {
    const Value * value = find(key);
    if (value == nullptr) {
        return std::nullopt;
    }
    if (value->kind != DFLASH_VALUE_REAL && value->kind != DFLASH_VALUE_INTEGER) {
        refuse_kind(*this, key, *value, DFLASH_VALUE_REAL);
    }
    const double number = value->kind == DFLASH_VALUE_REAL ? value->real : static_cast<double>(value->integer);
    if (!std::isfinite(number) || number < low || number > high) {
        refuse(key + ": " + number_text(number) + " is outside " + number_text(low) + ".." + number_text(high));
    }
    return number;
}

double ModelFile::need_real(const std::string & key, double low, double high) const {
    const auto value = real(key, low, high);
    if (!value) {
        refuse(key + ": is missing");
    }
    return *value;
}

std::optional<bool> ModelFile::boolean(const std::string & key) const {
    const Value * value = find(key);
    if (value == nullptr) {
        return std::nullopt;
    }
    if (value->kind != DFLASH_VALUE_BOOLEAN) {
        refuse_kind(*this, key, *value, DFLASH_VALUE_BOOLEAN);
    }
    return value->integer != 0;
}

std::optional<std::string> ModelFile::text(const std::string & key) const {
    const Value * value = find(key);
    if (value == nullptr) {
        return std::nullopt;
    }
    if (value->kind != DFLASH_VALUE_STRING) {
        refuse_kind(*this, key, *value, DFLASH_VALUE_STRING);
    }
    if (!is_plain_utf8(value->text())) {
        refuse(key + ": is not UTF-8 text");
    }
    return std::string(value->text());
}

std::optional<std::vector<int64_t>> ModelFile::integers(const std::string & key, int64_t low, int64_t high, uint64_t max_count) const {
    const Value * value = find(key);
    if (value == nullptr) {
        return std::nullopt;
    }
    if (value->kind != DFLASH_VALUE_INTEGER && value->kind != DFLASH_VALUE_INTEGERS) {
        refuse_kind(*this, key, *value, DFLASH_VALUE_INTEGERS);
    }
    if (value->count > max_count) {
        refuse(format("%s: has %llu elements, at most %llu are allowed", key.c_str(), static_cast<unsigned long long>(value->count),
                      static_cast<unsigned long long>(max_count)));
    }
    std::vector<int64_t> numbers;
    for (uint64_t i = 0; i < value->count; ++i) {
        numbers.push_back(value->integer_at(i));
        check_range(*this, key, numbers.back(), low, high);
    }
    return numbers;
}

std::optional<std::vector<bool>> ModelFile::booleans(const std::string & key, uint64_t max_count) const {
    const Value * value = find(key);
    if (value == nullptr) {
        return std::nullopt;
    }
    const bool is_boolean = value->kind == DFLASH_VALUE_BOOLEAN || value->kind == DFLASH_VALUE_BOOLEANS;
    if (!is_boolean && value->kind != DFLASH_VALUE_INTEGERS) { // some converters write 0 and 1
        refuse_kind(*this, key, *value, DFLASH_VALUE_BOOLEANS);
    }
    if (value->count > max_count) {
        refuse(format("%s: has %llu elements, at most %llu are allowed", key.c_str(), static_cast<unsigned long long>(value->count),
                      static_cast<unsigned long long>(max_count)));
    }
    std::vector<bool> flags;
    for (uint64_t i = 0; i < value->count; ++i) {
        const int64_t number = value->integer_at(i);
        check_range(*this, key, number, 0, 1);
        flags.push_back(number != 0);
    }
    return flags;
}

const TensorInfo * ModelFile::want_tensor(const std::string & name, std::initializer_list<int64_t> ne) const {
    const TensorInfo * found = tensor(name);
    if (found == nullptr) {
        return nullptr;
    }
    int64_t expected[GGML_MAX_DIMS] = {1, 1, 1, 1};
    int n = 0;
    for (const int64_t length : ne) {
        if (n < GGML_MAX_DIMS) {
            expected[n++] = length;
        }
    }
    for (int d = 0; d < GGML_MAX_DIMS; ++d) {
        if (found->ne[d] != expected[d]) {
            refuse("tensor '" + printable(name) + "': has shape " + shape_text(found->ne, GGML_MAX_DIMS) + ", but the metadata asks for " +
                   shape_text(expected, GGML_MAX_DIMS));
        }
    }
    return found;
}

const TensorInfo & ModelFile::need_tensor(const std::string & name, std::initializer_list<int64_t> ne) const {
    const TensorInfo * found = want_tensor(name, ne);
    if (found == nullptr) {
        refuse("tensor '" + printable(name) + "': is missing");
    }
    return *found;
}

void ModelFile::refuse(const std::string & why) const {
    throw Error(DFLASH_BAD_FILE, label() + ": " + why);
}

} // namespace dflash
