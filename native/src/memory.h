// Memory of the computer and of devices: what is free, contexts and buffers for tensors, and what is said where there is none.
#pragma once

#include <cstdint>
#include <memory>

#include "device.h"

namespace dflash {

// The computer's memory: all of it, and what a program can still have. 0 where the system does not say.
struct HostMemoryBytes {
    uint64_t total = 0;
    uint64_t available = 0;
};
HostMemoryBytes host_memory();
// What this process can still have there.
uint64_t free_bytes(const Device & device);
// A GPU with memory to spare for speed: 60 GiB or more.
bool is_large(const Device & device);

// No room on a device, with the numbers for dflash_last_failure.
class OutOfMemory : public Error {
  public:
    // needed_bytes: what could not be had; 0 where that is not known.
    OutOfMemory(const Device & device, const Purpose & purpose, uint64_t needed_bytes);
    const dflash_failure & numbers() const { return numbers_; }

  private:
    OutOfMemory(const Device & device, const Purpose & purpose, uint64_t needed_bytes, uint64_t n_free);
    dflash_failure numbers_ = {};
};

// A context that describes up to `n_tensors` tensors and, if asked, a graph of up to `n_nodes`, without their data. Its
// memory is ours: ggml ends the process where it gets none.
struct ContextDeleter {
    void operator()(ggml_context * ctx) const;
};
using ContextPtr = std::unique_ptr<ggml_context, ContextDeleter>;
ContextPtr tensor_context(size_t n_tensors, size_t n_nodes = 0);

// A buffer for the tensors of `ctx`, cleared to zero: one NaN left in unused memory would poison masked attention rows.
ggml_backend_buffer_ptr allocate_cleared(ggml_context * ctx, const Compute & compute, const Purpose & purpose);
// For plans: the tensors of `ctx` count as allocated, in an empty buffer that must outlive every graph over them.
ggml_backend_buffer_ptr pretend_allocated(ggml_context * ctx, const Device & device);
// The one or the other.
ggml_backend_buffer_ptr allocate(ggml_context * ctx, const Compute & compute, const Purpose & purpose, bool is_plan);
// What that buffer takes.
uint64_t context_bytes(ggml_context * ctx, ggml_backend_buffer_type_t type);

} // namespace dflash
