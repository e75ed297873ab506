// Devices, and streams that compute on one: backend, thread pool, cancel flag.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "dflash.h"
#include "error.h"
#include "ggml-backend.h"
#include "ggml-cpp.h"
#include "ggml.h"
#include "thread_count.h"

namespace dflash {

// Load the backends in `folder`; once per process. Throws when none can compute on the CPU.
void start_backends(const std::string & folder);

struct Device {
    ggml_backend_dev_t handle = nullptr;
    int index = 0;
    bool is_cpu = false;
    std::string name;    // "CPU", "CUDA0"
    std::string backend; // "CPU", "CUDA"
};

int device_count();
Device device_at(int index); // throws BAD_ARGUMENT
Device cpu_device();
void describe_device(int index, dflash_device & out);
int physical_cores();

// What memory or a computation is for: the part of dflash.h, and words for messages.
struct Purpose {
    dflash_part part = DFLASH_PART_UNKNOWN;
    const char * name = ""; // "KV cache"
};

// One backend stream, used by one session or loader.
class Compute {
  public:
    Compute(const Device & device, int n_threads);
    ~Compute();
    Compute(const Compute &) = delete;
    Compute & operator=(const Compute &) = delete;

    const Device & device() const { return device_; }
    ggml_backend_t backend() const { return backend_.get(); }
    ggml_backend_buffer_type_t buffer_type() const;
    // Hand a graph to the device; it runs after everything handed over before. Results are there after wait(). Throws
    // CANCELLED, OUT_OF_MEMORY or DEVICE_FAILED.
    void start(ggml_cgraph * graph, const Purpose & purpose);
    void wait();
    uint64_t n_waits() const { return n_waits_; }
    // The graph will be started again and again with all its tensors at the same addresses: spare the device the
    // comparison, node by node, that would find that out each time.
    void freeze(ggml_cgraph * graph) const;
    // Throws UNSUPPORTED naming the first operation that the device cannot run.
    void require_support(const ggml_cgraph * graph, const char * what) const;

    // For plans of what the device may refuse: from now on require_support lets everything pass.
    void ignore_support() { checks_support_ = false; }

    std::atomic<bool> is_cancelled{false};

  private:
    Device device_;
    ggml_backend_ptr backend_;
    void * pool_ = nullptr;
    void (*free_pool_)(void *) = nullptr;
    uint64_t n_waits_ = 0;
    bool checks_support_ = true;
    ThreadCount threads_{1}; // CPU only
    void (*set_threads_)(ggml_backend_t, int) = nullptr;
};

} // namespace dflash
