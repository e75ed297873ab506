// Inputs and results of passes; see inputs.h.
#include "inputs.h"

namespace dflash {

namespace {

uint64_t padded(uint64_t bytes, uint64_t alignment) {
    return (bytes + alignment - 1) / alignment * alignment;
}

} // namespace

HostMemory::HostMemory(const Device & device, uint64_t bytes) {
    if (ggml_backend_buffer_type_t type = ggml_backend_dev_host_buffer_type(device.handle)) {
        buffer_.reset(ggml_backend_buft_alloc_buffer(type, bytes));
    }
    if (!buffer_) {
        plain_.resize(bytes);
    }
}

const void * ResultBlock::fetch(const Compute & compute, const ggml_tensor * tensor) {
    const uint64_t size = padded(ggml_nbytes(tensor), 64);
    if (used_ + size > bytes_) {
        throw Error(DFLASH_INTERNAL, "The results of a computation are larger than planned.");
    }
    uint8_t * out = memory_.data() + used_;
    used_ += size;
    ggml_backend_tensor_get_async(compute.backend(), tensor, out, 0, ggml_nbytes(tensor));
    return out;
}

InputBlock::InputBlock(const Compute & compute, uint64_t bytes, const Purpose & purpose, bool is_plan)
    : alignment_(ggml_backend_buft_get_alignment(compute.buffer_type())),
      bytes_(bytes) {
    if (bytes == 0) {
        return;
    }
    ctx_ = tensor_context(1);
    whole_ = ggml_new_tensor_1d(ctx_.get(), GGML_TYPE_I8, static_cast<int64_t>(bytes));
    buffer_ = allocate(ctx_.get(), compute, purpose, is_plan);
    base_ = static_cast<uint8_t *>(whole_->data);
    if (is_plan) {
        return;
    }
    if (ggml_backend_buffer_is_host(buffer_.get())) {
        host_ = base_; // the device reads where the host writes
        return;
    }
    staging_ = HostMemory(compute.device(), bytes);
    host_ = staging_.data();
}

uint64_t InputBlock::bytes_for(const Compute & compute, const std::vector<ggml_tensor *> & tensors) {
    const uint64_t alignment = ggml_backend_buft_get_alignment(compute.buffer_type());
    uint64_t bytes = 0;
    for (const ggml_tensor * tensor : tensors) {
        bytes += padded(ggml_nbytes(tensor), alignment);
    }
    return bytes;
}

void InputBlock::place(const std::vector<ggml_tensor *> & tensors) const {
    uint64_t at = 0;
    for (ggml_tensor * tensor : tensors) {
        const uint64_t size = padded(ggml_nbytes(tensor), alignment_);
        if (at + size > bytes_) {
            throw Error(DFLASH_INTERNAL, "The inputs of a computation are larger than planned.");
        }
        tensor->buffer = buffer_.get(); // as ggml_backend_tensor_alloc does, which a plan's empty buffer would refuse
        tensor->data = host_ ? base_ + at : base_;
        at += size;
    }
}

void InputBlock::begin(Compute & compute) {
    if (is_sent_ && sent_after_ == compute.n_waits()) {
        compute.wait();
    }
    is_sent_ = false;
}

void InputBlock::send(const Compute & compute, uint64_t bytes) {
    if (host_ != base_ && bytes > 0) {
        ggml_backend_tensor_set_async(compute.backend(), whole_, host_, 0, bytes);
    }
    is_sent_ = true;
    sent_after_ = compute.n_waits();
}

} // namespace dflash
