// A model is one GGUF file, or several whose names and split.* keys have to agree.

#include "gguf_file.h"

#include <cstring>
#include <iterator>
#include <utility>

#include "gguf_parser.h"
#include "model_text.h"

namespace dflash {
namespace {

// The numbers in "PREFIX-00001-of-00003.gguf" and where their digits begin.
struct PartName {
    size_t number_at = 0;
    int number = 0; // 1-based; 0: not such a name
    int count = 0;
};

PartName parse_part_name(const std::string & path) {
    static const std::string kPattern = "-#####-of-#####.gguf";
    PartName name;
    if (path.size() <= kPattern.size()) {
        return name;
    }
    const size_t begin = path.size() - kPattern.size();
    int numbers[2] = {0, 0};
    for (size_t i = 0; i < kPattern.size(); ++i) {
        char c = path[begin + i];
        if (kPattern[i] == '#') {
            if (c < '0' || c > '9') {
                return name;
            }
            int & number = numbers[i < 8 ? 0 : 1];
            number = 10 * number + (c - '0');
            continue;
        }
        c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
        if (c != kPattern[i]) {
            return name;
        }
    }
    name.number_at = begin + 1;
    name.number = numbers[0];
    name.count = numbers[1];
    return name;
}

std::string part_path(const std::string & path, const PartName & name, int number) {
    std::string other = path;
    return other.replace(name.number_at, 5, format("%05d", number));
}

int64_t split_value(const std::map<std::string, Value> & values, const char * key, int64_t fallback, const std::string & label) {
    const auto found = values.find(key);
    if (found == values.end()) {
        return fallback;
    }
    if (found->second.kind != DFLASH_VALUE_INTEGER || found->second.integer < 0) {
        throw Error(DFLASH_BAD_FILE, label + ": " + key + ": is not a count");
    }
    return found->second.integer;
}

// "part 2 of 3"; `no` counts from 0 as split.no does.
std::string part_text(int64_t no, int64_t n_parts) {
    return "part " + std::to_string(no + 1) + " of " + std::to_string(n_parts);
}

// Map another part of the model that was opened as `label`.
std::shared_ptr<const Mapping> map_part(const std::string & path, const std::string & what, const std::string & label) {
    std::shared_ptr<const Mapping> mapping;
    try {
        mapping = std::make_shared<const Mapping>(path);
    } catch (const Error & error) {
        if (error.status() != DFLASH_BAD_FILE) {
            throw;
        }
        throw Error(DFLASH_BAD_FILE, label + ": " + what + " is needed: " + error.what());
    }
    if (!GgufReader::is_gguf(*mapping)) {
        throw Error(DFLASH_BAD_FILE, file_name(path) + ": magic: is not a GGUF file");
    }
    return mapping;
}

} // namespace

bool GgufReader::is_gguf(const Mapping & mapping) {
    return mapping.size() >= 4 && std::memcmp(mapping.data(), "GGUF", 4) == 0;
}

void GgufReader::read(const std::string & path, std::shared_ptr<const Mapping> mapping, ModelFile & file) {
    const std::string label = file_name(path);
    GgufPart opened = parse_gguf(label, *mapping);
    const int64_t n_parts = split_value(opened.values, "split.count", 1, label);
    if (n_parts > 1) {
        read_parts(path, mapping, opened.values, file);
    } else {
        file.path_ = path;
        file.mappings_.push_back(std::move(mapping));
        file.values_ = std::move(opened.values);
        file.tensors_ = std::move(opened.tensors);
    }
    for (size_t i = 0; i < file.tensors_.size(); ++i) {
        if (!file.tensor_index_.emplace(file.tensors_[i].name, i).second) {
            throw Error(DFLASH_BAD_FILE, label + ": tensor '" + printable(file.tensors_[i].name) + "': occurs in two parts");
        }
    }
}

void GgufReader::read_parts(const std::string & path, const std::shared_ptr<const Mapping> & opened, const std::map<std::string, Value> & values,
                            ModelFile & file) {
    const std::string label = file_name(path);
    const int64_t n_parts = split_value(values, "split.count", 1, label);
    const int64_t opened_no = split_value(values, "split.no", 0, label);
    const PartName name = parse_part_name(path);
    if (name.number != opened_no + 1 || name.count != n_parts) {
        const std::string ending = format("-%05lld-of-%05lld.gguf", static_cast<long long>(opened_no) + 1, static_cast<long long>(n_parts));
        throw Error(DFLASH_BAD_FILE, label + ": split.no: this is " + part_text(opened_no, n_parts) + ", so its name must end in " + ending);
    }
    int64_t n_expected = -1; // tensors in all parts, as the first part that says so has it
    for (int64_t no = 0; no < n_parts; ++no) {
        const std::string other = part_path(path, name, static_cast<int>(no + 1));
        const std::string other_label = file_name(other);
        const auto mapping = no == opened_no ? opened : map_part(other, part_text(no, n_parts), label);
        GgufPart part = parse_gguf(other_label, *mapping);
        file.mappings_.push_back(mapping);
        const int64_t no_here = split_value(part.values, "split.no", -1, other_label);
        const int64_t count_here = split_value(part.values, "split.count", -1, other_label);
        if (no_here != no || count_here != n_parts) {
            throw Error(DFLASH_BAD_FILE,
                        other_label + ": split.no: the name says " + part_text(no, n_parts) + ", but the file says " + part_text(no_here, count_here));
        }
        const int64_t n_here = split_value(part.values, "split.tensors.count", n_expected, other_label);
        if (n_expected >= 0 && n_here != n_expected) {
            throw Error(DFLASH_BAD_FILE, other_label + ": split.tensors.count: " + std::to_string(n_here) + ", but the parts before say " +
                                             std::to_string(n_expected) + "; this part belongs to another model");
        }
        n_expected = n_here;
        if (no == 0) {
            file.path_ = other;
            file.values_ = std::move(part.values); // the other parts have only the split keys
        }
        std::move(part.tensors.begin(), part.tensors.end(), std::back_inserter(file.tensors_));
    }
    if (n_expected >= 0 && static_cast<uint64_t>(n_expected) != file.tensors_.size()) {
        throw Error(DFLASH_BAD_FILE,
                    label + ": split.tensors.count: " + std::to_string(n_expected) + ", but all parts together hold " + std::to_string(file.tensors_.size()));
    }
}

} // namespace dflash
