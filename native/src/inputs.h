// What goes to the device and back for each pass: inputs written by the host into one block and sent in one copy, and
// small results.
#pragma once

#include <cstdint>
#include <vector>

#include "memory.h"

namespace dflash {

// Host memory that the device reads and writes without the host's help, where it offers such.
class HostMemory {
  public:
    HostMemory() = default;
    HostMemory(const Device & device, uint64_t bytes);
    uint8_t * data() { return buffer_ ? static_cast<uint8_t *>(ggml_backend_buffer_get_base(buffer_.get())) : plain_.data(); }

  private:
    ggml_backend_buffer_ptr buffer_;
    std::vector<uint8_t> plain_;
};

// Small results on their way back, several with one wait.
class ResultBlock {
  public:
    ResultBlock() = default;
    ResultBlock(const Device & device, uint64_t bytes) : memory_(device, bytes), bytes_(bytes) {}
    void begin() { used_ = 0; }
    // Fetch a tensor once the device has computed it. The data is there after the next wait, until the next begin.
    const void * fetch(const Compute & compute, const ggml_tensor * tensor);

  private:
    HostMemory memory_;
    uint64_t bytes_ = 0;
    uint64_t used_ = 0;
};

class InputBlock {
  public:
    InputBlock() = default;
    // Room for `bytes`; a plan has the size and no memory.
    InputBlock(const Compute & compute, uint64_t bytes, const Purpose & purpose, bool is_plan);

    // What tensors take when they are placed.
    static uint64_t bytes_for(const Compute & compute, const std::vector<ggml_tensor *> & tensors);
    // Give tensors their memory, one after another from the start of the block. Passes share it: each fills it anew.
    void place(const std::vector<ggml_tensor *> & tensors) const;

    // Before writing: an earlier send must have left the host.
    void begin(Compute & compute);
    // Where the host writes the data of a placed tensor.
    template <typename T> T * data(const ggml_tensor * tensor) const { return reinterpret_cast<T *>(host_ + offset_of(tensor)); }
    // Send the first `bytes`: there before whatever the device is given to run next.
    void send(const Compute & compute, uint64_t bytes);
    uint64_t bytes() const { return bytes_; }

  private:
    size_t offset_of(const ggml_tensor * tensor) const { return static_cast<size_t>(static_cast<const uint8_t *>(tensor->data) - base_); }

    ContextPtr ctx_;
    ggml_backend_buffer_ptr buffer_;
    HostMemory staging_;
    ggml_tensor * whole_ = nullptr;   // I8 [bytes]: the block as one tensor
    uint8_t * base_ = nullptr;        // address of the block on the device
    uint8_t * host_ = nullptr;        // where the host writes
    size_t alignment_ = 1;
    uint64_t bytes_ = 0;
    bool is_sent_ = false;
    uint64_t sent_after_ = 0; // waits of the stream before the last send
};

} // namespace dflash
