// What is free, contexts and buffers; see memory.h.
#include "memory.h"

#include <algorithm>
#include <fstream>
#include <locale>
#include <new>
#include <string>

#include "ggml-alloc.h"
#include "model_text.h"

#if defined(_WIN32)
#  define WIN32_LEAN_AND_MEAN
#  ifndef NOMINMAX // libstdc++ for Windows defines it as well
#    define NOMINMAX
#  endif
#  include <windows.h>
#elif defined(__linux__)
#  include <sys/resource.h>
#  include <unistd.h>
#endif

namespace dflash {

namespace {

// What the process may still map where its address space is limited (ulimit -v).
uint64_t free_address_space() {
#if defined(__linux__)
    rlimit limit = {};
    if (getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) {
        return UINT64_MAX;
    }
    std::ifstream sizes("/proc/self/statm");
    sizes.imbue(std::locale::classic());
    uint64_t n_pages = 0;
    sizes >> n_pages;
    const uint64_t used = n_pages * static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
    return limit.rlim_cur > used ? limit.rlim_cur - used : 0;
#else
    return UINT64_MAX;
#endif
}

// What a person can do about it.
const char * advice(dflash_part part) {
    switch (part) {
        case DFLASH_PART_WEIGHTS: return " Choose a smaller model or another device.";
        case DFLASH_PART_KV_CACHE:
        case DFLASH_PART_COMPUTE: return " Choose a smaller context.";
        case DFLASH_PART_DRAFT: return " Choose a smaller context, or load the model without its draft.";
        case DFLASH_PART_SCORER: return " Choose a smaller scorer.";
        case DFLASH_PART_UNKNOWN: break;
    }
    return "";
}

std::string sentence(const Device & device, const Purpose & purpose, uint64_t needed_bytes, uint64_t n_free) {
    std::string numbers;
    if (needed_bytes > 0 && n_free >= needed_bytes) {
        numbers = ": " + memory_text(needed_bytes) + " could not be had in one piece, although " + memory_text(n_free) + " are free";
    } else if (needed_bytes > 0) {
        numbers = ": " + memory_text(needed_bytes) + " are needed, " + memory_text(n_free) + " are free";
    } else if (n_free > 0) {
        numbers = ": " + memory_text(n_free) + " are free";
    }
    return "Not enough memory on " + device.name + " for the " + purpose.name + numbers + "." + advice(purpose.part);
}

} // namespace

HostMemoryBytes host_memory() {
    HostMemoryBytes memory;
#if defined(_WIN32)
    MEMORYSTATUSEX status = {};
    status.dwLength = sizeof(status);
    if (GlobalMemoryStatusEx(&status)) {
        memory = {status.ullTotalPhys, status.ullAvailPhys};
    }
#elif defined(__linux__)
    std::ifstream info("/proc/meminfo");
    info.imbue(std::locale::classic());
    std::string key;
    uint64_t kib = 0;
    std::string unit;
    while (info >> key >> kib) {
        std::getline(info, unit);
        if (key == "MemTotal:") {
            memory.total = kib * 1024;
        } else if (key == "MemAvailable:") {
            memory.available = kib * 1024;
        }
    }
#endif
    return memory;
}

uint64_t free_bytes(const Device & device) {
    if (device.is_cpu) {
        return std::min(host_memory().available, free_address_space());
    }
    size_t n_free = 0;
    size_t n_total = 0;
    ggml_backend_dev_memory(device.handle, &n_free, &n_total);
    return n_free;
}

bool is_large(const Device & device) {
    constexpr uint64_t kLarge = 60ull << 30;
    size_t n_free = 0;
    size_t n_total = 0;
    ggml_backend_dev_memory(device.handle, &n_free, &n_total);
    return !device.is_cpu && n_total >= kLarge;
}

OutOfMemory::OutOfMemory(const Device & device, const Purpose & purpose, uint64_t needed_bytes)
    : OutOfMemory(device, purpose, needed_bytes, free_bytes(device)) {}

OutOfMemory::OutOfMemory(const Device & device, const Purpose & purpose, uint64_t needed_bytes, uint64_t n_free)
    : Error(DFLASH_OUT_OF_MEMORY, sentence(device, purpose, needed_bytes, n_free)) {
    numbers_.size = sizeof(numbers_);
    numbers_.status = DFLASH_OUT_OF_MEMORY;
    numbers_.device = device.index;
    numbers_.part = purpose.part;
    numbers_.needed_bytes = needed_bytes;
    numbers_.free_bytes = n_free;
}

void ContextDeleter::operator()(ggml_context * ctx) const {
    void * memory = ggml_get_mem_buffer(ctx);
    ggml_free(ctx);
    ::operator delete(memory);
}

ContextPtr tensor_context(size_t n_tensors, size_t n_nodes) {
    ggml_init_params params = {};
    const size_t n_bytes = ggml_tensor_overhead() * n_tensors + (n_nodes > 0 ? ggml_graph_overhead_custom(n_nodes, false) : 0);
    params.mem_size = GGML_PAD(std::max<size_t>(n_bytes, 1), GGML_MEM_ALIGN);
    params.mem_buffer = ::operator new(params.mem_size, std::nothrow);
    params.no_alloc = true;
    if (!params.mem_buffer) {
        throw OutOfMemory(cpu_device(), {DFLASH_PART_UNKNOWN, "description of a computation"}, params.mem_size);
    }
    return ContextPtr(ggml_init(params));
}

ggml_backend_buffer_ptr allocate_cleared(ggml_context * ctx, const Compute & compute, const Purpose & purpose) {
    ggml_backend_buffer_ptr buffer(ggml_backend_alloc_ctx_tensors_from_buft(ctx, compute.buffer_type()));
    if (!buffer) {
        throw OutOfMemory(compute.device(), purpose, context_bytes(ctx, compute.buffer_type()));
    }
    ggml_backend_buffer_clear(buffer.get(), 0);
    return buffer;
}

ggml_backend_buffer_ptr pretend_allocated(ggml_context * ctx, const Device & device) {
    ggml_backend_buffer_ptr buffer(ggml_backend_buft_alloc_buffer(ggml_backend_dev_buffer_type(device.handle), 0));
    if (!buffer) {
        throw OutOfMemory(device, {DFLASH_PART_UNKNOWN, "plan"}, 0);
    }
    static uint8_t nowhere = 0; // never read: a plan computes nothing
    for (ggml_tensor * t = ggml_get_first_tensor(ctx); t; t = ggml_get_next_tensor(ctx, t)) {
        t->buffer = buffer.get();
        t->data = &nowhere;
    }
    return buffer;
}

ggml_backend_buffer_ptr allocate(ggml_context * ctx, const Compute & compute, const Purpose & purpose, bool is_plan) {
    return is_plan ? pretend_allocated(ctx, compute.device()) : allocate_cleared(ctx, compute, purpose);
}

uint64_t context_bytes(ggml_context * ctx, ggml_backend_buffer_type_t type) {
    const uint64_t alignment = ggml_backend_buft_get_alignment(type);
    uint64_t bytes = 0;
    for (ggml_tensor * t = ggml_get_first_tensor(ctx); t; t = ggml_get_next_tensor(ctx, t)) {
        bytes += (ggml_backend_buft_get_alloc_size(type, t) + alignment - 1) / alignment * alignment;
    }
    return bytes;
}

} // namespace dflash
