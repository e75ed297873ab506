// Tensors of a checked file on a device: mapped in place where the device can, copied piece by piece elsewhere.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "memory.h"
#include "model_file.h"
#include "products.h"

namespace dflash {

// How a tensor is used decides where and in which form it is kept.
enum class Use {
    kMatmul, // left side of a matrix product: may be kept in a layout of the device's own
    kRows,   // rows are looked up: plain layout
    kVector, // norm, bias, scale: F32, whatever the file holds
    kWide,   // matmul whose inputs are too large for half precision: F16 files are widened to F32
};

class Weights {
  public:
    // part: whose weights they are, when there is no room for them.
    Weights(std::shared_ptr<const ModelFile> file, const Device & device, dflash_part part);

    const ModelFile & file() const { return *file_; }
    std::shared_ptr<const ModelFile> share_file() const { return file_; }
    const Device & device() const { return device_; }
    // The products that graphs compute with these weights; they learn from the device.
    Products & products() const { return *products_; }

    // Ask for a tensor. The same tensor may be asked for with several uses. The returned tensor has no data until the
    // load is done.
    ggml_tensor * add(const TensorInfo & info, Use use);
    // Matrices over the same input and of one type, their rows one behind the other: returns them as one matrix, which a
    // GPU multiplies with in one go. `parts` receives each by itself. nullptr, with no parts, where that is not to be
    // had or brings nothing: the CPU computes on the mapped file.
    ggml_tensor * add_stacked(const std::vector<const TensorInfo *> & infos, std::vector<ggml_tensor *> & parts);
    // F32 data computed from file data when loading; `fill` writes ggml_nelements(tensor) floats.
    ggml_tensor * add_derived(const std::string & name, std::initializer_list<int64_t> ne, std::function<void(float *)> fill);

    // For plans: count the bytes, reserve nothing.
    void pretend();
    // Reserve memory for everything asked for. Throws OUT_OF_MEMORY with the numbers.
    void allocate();
    // Move the next piece; false when there is nothing left.
    bool load_next();
    uint64_t bytes_done() const { return bytes_done_; }
    uint64_t bytes_total() const { return bytes_total_; }
    bool is_loaded() const { return is_allocated_ && next_ == items_.size(); }
    // Device bytes, mapped ones included.
    uint64_t device_bytes() const { return device_bytes_; }

  private:
    enum class Placement { kMapped, kDefault, kExtra };
    struct Item {
        ggml_tensor * tensor = nullptr;
        const TensorInfo * info = nullptr;
        Use use = Use::kMatmul;
        Placement placement = Placement::kDefault;
        ggml_backend_buffer_type_t type = nullptr;
        std::function<void(float *)> fill;
        ggml_tensor * stack = nullptr; // of the first part of a stack: all parts as one
        bool is_stacked = false;       // a further part: lies right behind the item before
    };

    // A buffer that is being filled with items of its kind.
    struct Room {
        ggml_backend_buffer_t buffer = nullptr;
        uint64_t used = 0;
        uint64_t left = 0; // bytes still to place in this kind
    };

    ggml_backend_buffer_type_t extra_type_for(const TensorInfo & info) const;
    Item & add_item(const TensorInfo * info, ggml_type type, int n_dims, const int64_t * ne, const std::string & name);
    ggml_backend_buffer_type_t type_of(const Item & item) const;
    uint64_t size_of(const Item & item) const;
    void place_mapped(const Item & item, std::map<const Mapping *, ggml_backend_buffer_t> & mapped);
    void place(size_t index, Room & room);
    void add_buffer(ggml_backend_buffer_t buffer);
    void upload(const Item & item);

    std::shared_ptr<const ModelFile> file_;
    Device device_;
    dflash_part part_;
    std::unique_ptr<Products> products_ = std::make_unique<Products>();
    ContextPtr ctx_;
    std::vector<Item> items_;
    std::vector<ggml_backend_buffer_type_t> extra_types_;
    std::vector<ggml_backend_buffer_ptr> buffers_;
    bool is_allocated_ = false;
    size_t next_ = 0;
    uint64_t piece_done_ = 0; // of items_[next_], for tensors uploaded in several pieces
    uint64_t bytes_done_ = 0;
    uint64_t bytes_total_ = 0;
    uint64_t device_bytes_ = 0;
};

// data[0..n) of a tensor as floats, whatever its type.
void to_floats(const TensorInfo & info, float * out);

} // namespace dflash
