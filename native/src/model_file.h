// A model file, mapped and checked: metadata values and tensor descriptions, whatever the container (GGUF, safetensors).
// Nothing in here computes; everything a ModelFile hands out has been bounds-checked when it was opened.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "dflash.h"
#include "error.h"
#include "ggml.h"
#include "mapping.h"

namespace dflash {

// One metadata value. Numbers of every width are widened; arrays and strings point into the mapping (or into `owned`).
struct Value {
    dflash_value_kind kind = DFLASH_VALUE_INTEGER;
    int64_t integer = 0;
    double real = 0;
    uint64_t count = 0;           // array elements, or bytes of a string
    const uint8_t * data = nullptr;
    uint64_t n_bytes = 0;
    int element_bytes = 0;
    bool is_signed = false;
    std::shared_ptr<const std::vector<uint8_t>> owned; // for containers that do not store the value in GGUF's layout

    std::string_view text() const { return {reinterpret_cast<const char *>(data), static_cast<size_t>(count)}; }
    int64_t integer_at(uint64_t i) const; // INTEGERS, BOOLEANS; i < count
    double real_at(uint64_t i) const;     // REALS
};

struct TensorInfo {
    std::string name;
    ggml_type type = GGML_TYPE_F32;
    int n_dims = 0;
    int64_t ne[GGML_MAX_DIMS] = {1, 1, 1, 1}; // every one > 0
    const uint8_t * data = nullptr;           // n_bytes, inside a mapping
    uint64_t n_bytes = 0;
};

class ModelFile {
  public:
    // Open and check a GGUF file (any part of a split one opens the whole), or a .safetensors draft with its config.json.
    // Throws Error(BAD_FILE) naming file, field and value.
    static std::shared_ptr<const ModelFile> open(const std::string & path);

    const std::string & path() const { return path_; }
    std::string label() const; // the file's own name, for messages
    const std::string & architecture() const { return architecture_; } // general.architecture, "" when absent
    uint64_t file_bytes() const;                                        // of all parts

    const Value * find(const std::string & key) const; // nullptr when absent
    const TensorInfo * tensor(const std::string & name) const; // nullptr when absent
    const std::vector<TensorInfo> & tensors() const { return tensors_; }
    const std::vector<std::shared_ptr<const Mapping>> & mappings() const { return mappings_; }

    // Typed access. `key` is used as it is. need_*: absent -> Error(BAD_FILE); wrong kind, or outside [low, high] ->
    // Error(BAD_FILE), each naming file, key and value. Reals must be finite.
    std::optional<int64_t> integer(const std::string & key, int64_t low, int64_t high) const;
    int64_t need_integer(const std::string & key, int64_t low, int64_t high) const;
    std::optional<double> real(const std::string & key, double low, double high) const;
    double need_real(const std::string & key, double low, double high) const;
    std::optional<bool> boolean(const std::string & key) const;
    std::optional<std::string> text(const std::string & key) const;
    // A scalar counts as an array of one. Empty optional when absent.
    std::optional<std::vector<int64_t>> integers(const std::string & key, int64_t low, int64_t high, uint64_t max_count) const;
    std::optional<std::vector<bool>> booleans(const std::string & key, uint64_t max_count) const;

    // The tensor, required with exactly these dimensions (ne order; trailing ones may be left out).
    const TensorInfo & need_tensor(const std::string & name, std::initializer_list<int64_t> ne) const;
    // nullptr when absent; wrong shape is still an error.
    const TensorInfo * want_tensor(const std::string & name, std::initializer_list<int64_t> ne) const;

    [[noreturn]] void refuse(const std::string & why) const; // Error(BAD_FILE, "<label>: <why>")

  private:
    friend class GgufReader;
    friend class SafetensorsReader;
    std::string path_;
    std::string architecture_;
    std::vector<std::shared_ptr<const Mapping>> mappings_;
    std::map<std::string, Value> values_;
    std::vector<TensorInfo> tensors_;
    std::map<std::string, size_t> tensor_index_;
};

} // namespace dflash
