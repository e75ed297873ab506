// Weights on a device; see weights.h.
#include "weights.h"

#include <algorithm>
#include <cstring>
#include <new>

namespace dflash {

namespace {

constexpr uint64_t kPieceBytes = 64u << 20; // one call of load_next moves about this much

// The name ggml shows in errors must fit its fixed buffer.
void set_name(ggml_tensor * tensor, const std::string & name) {
    ggml_set_name(tensor, name.substr(0, GGML_MAX_NAME - 1).c_str());
}

} // namespace

void to_floats(const TensorInfo & info, float * out) {
    const int64_t n = info.ne[0] * info.ne[1] * info.ne[2] * info.ne[3];
    if (info.type == GGML_TYPE_F32) {
        std::memcpy(out, info.data, static_cast<size_t>(n) * sizeof(float));
        return;
    }
    const ggml_type_traits * traits = ggml_get_type_traits(info.type);
    if (!traits->to_float) {
        throw Error(DFLASH_UNSUPPORTED, format("Tensor %s: type %s cannot be read as numbers.", info.name.c_str(), ggml_type_name(info.type)));
    }
    traits->to_float(info.data, out, n);
}

namespace {

// Whole numbers, doubles and intermediate formats have no kernels: a product or a lookup would end the process.
void require_number_type(const ModelFile & file, const TensorInfo & info) {
    if (info.type != GGML_TYPE_F32 && !ggml_get_type_traits(info.type)->to_float) {
        throw Error(DFLASH_UNSUPPORTED, format("%s: tensor '%s' is of type %s, which is not a type for weights.", file.label().c_str(), info.name.c_str(),
                                               ggml_type_name(info.type)));
    }
}

} // namespace

Weights::Weights(std::shared_ptr<const ModelFile> file, const Device & device, dflash_part part) : file_(std::move(file)), device_(device), part_(part) {
    // Room for every tensor of the file twice (a tied head is used in two ways), for stacks and some derived ones.
    ctx_ = tensor_context(3 * file_->tensors().size() + 512);
    const auto get_extra = reinterpret_cast<ggml_backend_dev_get_extra_bufts_t>(
        ggml_backend_reg_get_proc_address(ggml_backend_dev_backend_reg(device.handle), "ggml_backend_dev_get_extra_bufts"));
    if (get_extra) {
        for (ggml_backend_buffer_type_t * type = get_extra(device.handle); type && *type; ++type) {
            extra_types_.push_back(*type);
        }
    }
}

// A layout of the device's own (the CPU's repacked weights) for matrices that it multiplies faster in that form.
ggml_backend_buffer_type_t Weights::extra_type_for(const TensorInfo & info) const {
    if (info.n_dims != 2 || extra_types_.empty()) {
        return nullptr;
    }
    const ContextPtr ctx = tensor_context(4);
    for (ggml_backend_buffer_type_t type : extra_types_) {
        ggml_tensor * weight = ggml_new_tensor_2d(ctx.get(), info.type, info.ne[0], info.ne[1]);
        ggml_tensor * input = ggml_new_tensor_2d(ctx.get(), GGML_TYPE_F32, info.ne[0], 4);
        ggml_tensor * product = ggml_mul_mat(ctx.get(), weight, input);
        // Support is asked for a tensor that lies in such a buffer; an empty one will do.
        ggml_backend_buffer_ptr probe(ggml_backend_buft_alloc_buffer(type, 0));
        if (!probe) {
            return nullptr;
        }
        weight->buffer = probe.get();
        const bool is_supported = ggml_backend_dev_supports_op(device_.handle, product);
        weight->buffer = nullptr;
        if (is_supported) {
            return type;
        }
        ggml_reset(ctx.get());
    }
    return nullptr;
}

Weights::Item & Weights::add_item(const TensorInfo * info, ggml_type type, int n_dims, const int64_t * ne, const std::string & name) {
    Item item;
    item.info = info;
    item.tensor = ggml_new_tensor(ctx_.get(), type, n_dims, ne);
    set_name(item.tensor, name);
    items_.push_back(std::move(item));
    return items_.back();
}

ggml_tensor * Weights::add(const TensorInfo & info, Use use) {
    require_number_type(*file_, info);
    ggml_backend_buffer_type_t extra = use == Use::kMatmul ? extra_type_for(info) : nullptr;
    for (const Item & item : items_) {
        if (item.info == &info && item.use == use) {
            return item.tensor;
        }
        // One copy serves lookups and products alike, unless products want a layout of their own.
        const bool is_plain = (use == Use::kRows || (use == Use::kMatmul && !extra)) && !item.fill && item.placement != Placement::kExtra;
        if (item.info == &info && is_plain && (item.use == Use::kRows || item.use == Use::kMatmul)) {
            return item.tensor;
        }
    }
    const bool to_f32 = (use == Use::kVector && info.type != GGML_TYPE_F32) || (use == Use::kWide && info.type == GGML_TYPE_F16);
    Item & item = add_item(&info, to_f32 ? GGML_TYPE_F32 : info.type, info.n_dims, info.ne, info.name);
    item.use = use;
    if (to_f32) {
        const TensorInfo * source = &info;
        item.fill = [source](float * out) { to_floats(*source, out); };
    } else if (extra) {
        item.placement = Placement::kExtra;
        item.type = extra;
    } else {
        // The CPU computes on the mapped file itself where the data lies on a boundary that its kernels accept.
        ggml_backend_dev_props props = {};
        ggml_backend_dev_get_props(device_.handle, &props);
        const size_t alignment = ggml_backend_buft_get_alignment(ggml_backend_dev_buffer_type(device_.handle));
        if (device_.is_cpu && props.caps.buffer_from_host_ptr && reinterpret_cast<uintptr_t>(info.data) % alignment == 0) {
            item.placement = Placement::kMapped;
        }
    }
    return item.tensor;
}

ggml_tensor * Weights::add_stacked(const std::vector<const TensorInfo *> & infos, std::vector<ggml_tensor *> & parts) {
    parts.clear();
    const TensorInfo & first = *infos.at(0);
    ggml_backend_buffer_type_t plain = ggml_backend_dev_buffer_type(device_.handle);
    const size_t alignment = ggml_backend_buft_get_alignment(plain);
    int64_t n_rows = 0;
    uint64_t bytes = 0;
    for (const TensorInfo * info : infos) {
        const uint64_t size = ggml_row_size(info->type, info->ne[0]) * static_cast<uint64_t>(info->ne[1]);
        const bool is_last = info == infos.back();
        if (device_.is_cpu || info->n_dims != 2 || info->type != first.type || info->ne[0] != first.ne[0] || (!is_last && size % alignment != 0) ||
            extra_type_for(*info)) {
            return nullptr;
        }
        n_rows += info->ne[1];
        bytes += size;
    }
    if (infos.size() < 2 || bytes > ggml_backend_buft_get_max_size(plain) / 2) {
        return nullptr;
    }
    for (const TensorInfo * info : infos) {
        Item & item = add_item(info, info->type, info->n_dims, info->ne, info->name);
        item.is_stacked = !parts.empty();
        parts.push_back(item.tensor);
    }
    Item & item = items_[items_.size() - infos.size()];
    item.stack = ggml_new_tensor_2d(ctx_.get(), first.type, first.ne[0], n_rows);
    set_name(item.stack, first.name + "+");
    return item.stack;
}

ggml_tensor * Weights::add_derived(const std::string & name, std::initializer_list<int64_t> ne, std::function<void(float *)> fill) {
    std::vector<int64_t> dims(ne);
    Item & item = add_item(nullptr, GGML_TYPE_F32, static_cast<int>(dims.size()), dims.data(), name);
    item.fill = std::move(fill);
    return item.tensor;
}

void Weights::pretend() {
    device_bytes_ = 0;
    for (const Item & item : items_) {
        device_bytes_ += ggml_nbytes(item.tensor);
    }
    buffers_.push_back(pretend_allocated(ctx_.get(), device_));
}

ggml_backend_buffer_type_t Weights::type_of(const Item & item) const {
    return item.placement == Placement::kExtra ? item.type : ggml_backend_dev_buffer_type(device_.handle);
}

// What an item takes of a buffer. A stack takes its room as a whole, with the first of its parts.
uint64_t Weights::size_of(const Item & item) const {
    const uint64_t alignment = ggml_backend_buft_get_alignment(type_of(item));
    const uint64_t bytes = ggml_backend_buft_get_alloc_size(type_of(item), item.stack ? item.stack : item.tensor);
    return (bytes + alignment - 1) / alignment * alignment;
}

void Weights::allocate() {
    bytes_total_ = 0; // an attempt before this one may have failed
    device_bytes_ = 0;
    buffers_.clear();
    std::map<ggml_backend_buffer_type_t, Room> rooms;
    for (const Item & item : items_) {
        item.tensor->buffer = nullptr;
        item.tensor->data = nullptr;
        bytes_total_ += ggml_nbytes(item.tensor);
        device_bytes_ += ggml_nbytes(item.tensor);
        if (item.stack) {
            item.stack->buffer = nullptr;
            item.stack->data = nullptr;
        }
        if (item.placement != Placement::kMapped && !item.is_stacked) {
            rooms[type_of(item)].left += size_of(item);
        }
    }
    std::map<const Mapping *, ggml_backend_buffer_t> mapped;
    for (size_t i = 0; i < items_.size(); ++i) {
        if (items_[i].placement == Placement::kMapped) {
            place_mapped(items_[i], mapped);
        } else if (!items_[i].is_stacked) { // placed with the first part of its stack
            place(i, rooms[type_of(items_[i])]);
        }
    }
    is_allocated_ = true;
}

// On the file itself.
void Weights::place_mapped(const Item & item, std::map<const Mapping *, ggml_backend_buffer_t> & mapped) {
    for (const auto & mapping : file_->mappings()) {
        if (item.info->data < mapping->data() || item.info->data >= mapping->data() + mapping->size()) {
            continue;
        }
        ggml_backend_buffer_t & buffer = mapped[mapping.get()];
        if (!buffer) {
            // ggml takes a plain pointer; nothing writes to weights.
            buffer = ggml_backend_dev_buffer_from_host_ptr(device_.handle, const_cast<uint8_t *>(mapping->data()), mapping->size(), mapping->size());
            if (!buffer) {
                throw Error(DFLASH_DEVICE_FAILED, "The model file could not be used in place: " + file_->label());
            }
            add_buffer(buffer);
        }
        if (ggml_backend_tensor_alloc(buffer, item.tensor, const_cast<uint8_t *>(item.info->data)) != GGML_STATUS_SUCCESS) {
            throw Error(DFLASH_INTERNAL, "Tensor " + item.info->name + " could not be placed.");
        }
    }
}

// In memory of the device: several buffers where it limits the size of one.
void Weights::place(size_t index, Room & room) {
    const Item & item = items_[index];
    const uint64_t bytes = size_of(item);
    if (!room.buffer || room.used + bytes > ggml_backend_buffer_get_size(room.buffer)) {
        ggml_backend_buffer_type_t type = type_of(item);
        const uint64_t want = std::max(bytes, std::min<uint64_t>(room.left, ggml_backend_buft_get_max_size(type))) + ggml_backend_buft_get_alignment(type);
        room.buffer = ggml_backend_buft_alloc_buffer(type, want);
        if (!room.buffer) {
            throw OutOfMemory(device_, {part_, ("weights of " + file_->label()).c_str()}, std::max(want, room.left));
        }
        add_buffer(room.buffer);
        room.used = 0;
    }
    uint8_t * at = static_cast<uint8_t *>(ggml_backend_buffer_get_base(room.buffer)) + room.used;
    const auto put = [&](ggml_tensor * tensor, uint64_t offset) {
        if (ggml_backend_tensor_alloc(room.buffer, tensor, at + offset) != GGML_STATUS_SUCCESS) {
            throw Error(DFLASH_INTERNAL, std::string("Tensor ") + tensor->name + " could not be placed.");
        }
    };
    put(item.tensor, 0);
    if (item.stack) {
        put(item.stack, 0);
        uint64_t offset = ggml_nbytes(item.tensor);
        for (size_t i = index + 1; i < items_.size() && items_[i].is_stacked; ++i) {
            put(items_[i].tensor, offset);
            offset += ggml_nbytes(items_[i].tensor);
        }
    }
    room.used += bytes;
    room.left -= std::min(room.left, bytes);
}

void Weights::add_buffer(ggml_backend_buffer_t buffer) {
    buffers_.emplace_back(buffer);
    ggml_backend_buffer_set_usage(buffer, GGML_BACKEND_BUFFER_USAGE_WEIGHTS);
}

void Weights::upload(const Item & item) {
    if (item.fill) {
        // Not a vector: the largest are hundreds of MiB, and where there is no room the person wants to read how many.
        const std::unique_ptr<float[]> data(new (std::nothrow) float[static_cast<size_t>(ggml_nelements(item.tensor))]);
        if (!data) {
            throw OutOfMemory(cpu_device(), {part_, "weights on their way to the device"}, ggml_nbytes(item.tensor));
        }
        item.fill(data.get());
        ggml_backend_tensor_set(item.tensor, data.get(), 0, ggml_nbytes(item.tensor));
        piece_done_ = ggml_nbytes(item.tensor);
        return;
    }
    const uint64_t n = ggml_nbytes(item.tensor);
    // Repacking needs the whole tensor; elsewhere large ones go in pieces, so that a cancel is never far away.
    const uint64_t piece = item.placement == Placement::kExtra ? n : std::min(n - piece_done_, kPieceBytes);
    ggml_backend_tensor_set(item.tensor, item.info->data + piece_done_, piece_done_, piece);
    piece_done_ += piece;
}

bool Weights::load_next() {
    uint64_t moved = 0;
    while (next_ < items_.size() && moved < kPieceBytes) {
        Item & item = items_[next_];
        const uint64_t before = piece_done_;
        if (item.placement == Placement::kMapped) {
            piece_done_ = ggml_nbytes(item.tensor);
            bytes_done_ += piece_done_;
        } else {
            upload(item);
            moved += piece_done_ - before;
            bytes_done_ += piece_done_ - before;
        }
        if (piece_done_ == ggml_nbytes(item.tensor)) {
            piece_done_ = 0;
            ++next_;
        }
    }
    return next_ < items_.size();
}

} // namespace dflash
