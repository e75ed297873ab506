// Devices and compute streams; see device.h.
#include "device.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <fstream>
#include <mutex>
#include <set>
#include <thread>

#include "clock.h"
#include "ggml-cpu.h"
#include "log.h"
#include "memory.h"
#include "model_text.h"

#if defined(_WIN32)
#  define WIN32_LEAN_AND_MEAN
#  ifndef NOMINMAX // libstdc++ for Windows defines it as well
#    define NOMINMAX
#  endif
#  include <windows.h>
#endif

namespace dflash {

namespace {

std::mutex start_mutex;
bool is_started = false;
std::vector<Device> devices;

// Time that all threads of this process have computed.
int64_t process_cpu_us() {
#if defined(_WIN32)
    FILETIME created, exited, kernel, user;
    GetProcessTimes(GetCurrentProcess(), &created, &exited, &kernel, &user);
    const auto ticks = [](const FILETIME & time) { return static_cast<int64_t>((static_cast<uint64_t>(time.dwHighDateTime) << 32) | time.dwLowDateTime); };
    return (ticks(kernel) + ticks(user)) / 10;
#else
    timespec time = {};
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return int64_t{time.tv_sec} * 1000000 + time.tv_nsec / 1000;
#endif
}

template <typename Function> Function cpu_function(ggml_backend_dev_t device, const char * name) {
    return reinterpret_cast<Function>(ggml_backend_reg_get_proc_address(ggml_backend_dev_backend_reg(device), name));
}

bool is_cancel_wanted(void * flag) {
    return static_cast<std::atomic<bool> *>(flag)->load(std::memory_order_relaxed);
}

} // namespace

void start_backends(const std::string & folder) {
    const std::lock_guard<std::mutex> lock(start_mutex);
    if (is_started) {
        return;
    }
    capture_ggml_log();
    // An environment variable must not make us load a library from somewhere else.
#if defined(_WIN32)
    _putenv_s("GGML_BACKEND_PATH", "");
#else
    unsetenv("GGML_BACKEND_PATH");
#endif
    ggml_backend_load_all_from_path(folder.c_str());
    std::vector<Device> found;
    bool has_cpu = false;
    for (size_t i = 0; i < ggml_backend_dev_count(); ++i) {
        ggml_backend_dev_t handle = ggml_backend_dev_get(i);
        const enum ggml_backend_dev_type type = ggml_backend_dev_type(handle);
        if (type == GGML_BACKEND_DEVICE_TYPE_ACCEL || type == GGML_BACKEND_DEVICE_TYPE_META) {
            continue; // helpers of other devices, nothing a person could choose
        }
        Device device;
        device.handle = handle;
        device.is_cpu = type == GGML_BACKEND_DEVICE_TYPE_CPU;
        device.name = ggml_backend_dev_name(handle);
        device.backend = ggml_backend_reg_name(ggml_backend_dev_backend_reg(handle));
        has_cpu = has_cpu || device.is_cpu;
        found.push_back(device);
    }
    if (!has_cpu) {
        throw Error(DFLASH_DEVICE_FAILED, "No CPU backend was found in " + folder + ". Install the program again.");
    }
    // Fast devices first, the CPU last: the order people expect in a list.
    std::stable_sort(found.begin(), found.end(), [](const Device & a, const Device & b) { return a.is_cpu < b.is_cpu; });
    for (size_t i = 0; i < found.size(); ++i) {
        found[i].index = static_cast<int>(i);
    }
    devices = std::move(found);
    is_started = true;
}

int device_count() {
    const std::lock_guard<std::mutex> lock(start_mutex);
    if (!is_started) {
        throw Error(DFLASH_BAD_STATE, "dflash_start has not been called.");
    }
    return static_cast<int>(devices.size());
}

Device device_at(int index) {
    const int n = device_count();
    if (index < 0 || index >= n) {
        throw Error(DFLASH_BAD_ARGUMENT, format("There is no device %d: this machine has %d.", index, n));
    }
    const std::lock_guard<std::mutex> lock(start_mutex);
    return devices[static_cast<size_t>(index)];
}

Device cpu_device() {
    const int n = device_count();
    const std::lock_guard<std::mutex> lock(start_mutex);
    return devices[static_cast<size_t>(n - 1)]; // start_backends saw to it
}

void describe_device(int index, dflash_device & out) {
    const Device device = device_at(index);
    ggml_backend_dev_props props = {};
    ggml_backend_dev_get_props(device.handle, &props);
    out.index = index;
    switch (props.type) {
        case GGML_BACKEND_DEVICE_TYPE_CPU: out.kind = DFLASH_DEVICE_CPU; break;
        case GGML_BACKEND_DEVICE_TYPE_GPU: out.kind = DFLASH_DEVICE_GPU; break;
        case GGML_BACKEND_DEVICE_TYPE_IGPU: out.kind = DFLASH_DEVICE_INTEGRATED_GPU; break;
        default: out.kind = DFLASH_DEVICE_OTHER; break;
    }
    out.total_bytes = props.memory_total;
    out.free_bytes = props.memory_free;
    if (device.is_cpu) { // for ggml all memory of the machine is free
        const HostMemoryBytes memory = host_memory();
        out.total_bytes = memory.total > 0 ? memory.total : out.total_bytes;
        out.free_bytes = memory.total > 0 ? memory.available : out.free_bytes;
    }
    copy_text(out.name, sizeof(out.name), device.name);
    copy_text(out.backend, sizeof(out.backend), device.backend);
    copy_text(out.description, sizeof(out.description), props.description ? props.description : "");
    copy_text(out.id, sizeof(out.id), props.device_id ? props.device_id : device.name);
}

int physical_cores() {
#if defined(__linux__)
    // Hyper-threads share the vector units that all our time goes to.
    std::set<std::pair<int, int>> cores;
    for (unsigned cpu = 0; cpu < std::thread::hardware_concurrency(); ++cpu) {
        const std::string folder = "/sys/devices/system/cpu/cpu" + std::to_string(cpu) + "/topology/";
        std::ifstream core(folder + "core_id");
        std::ifstream package(folder + "physical_package_id");
        int core_id = 0;
        int package_id = 0;
        if (core >> core_id && package >> package_id) {
            cores.insert({package_id, core_id});
        }
    }
    if (!cores.empty()) {
        return static_cast<int>(cores.size());
    }
#elif defined(_WIN32)
    DWORD bytes = 0;
    GetLogicalProcessorInformationEx(RelationProcessorCore, nullptr, &bytes);
    std::vector<uint8_t> buffer(bytes);
    auto * first = reinterpret_cast<SYSTEM_LOGICAL_PROCESSOR_INFORMATION_EX *>(buffer.data());
    if (bytes > 0 && GetLogicalProcessorInformationEx(RelationProcessorCore, first, &bytes)) {
        int n = 0;
        for (DWORD at = 0; at < bytes; ++n) {
            at += reinterpret_cast<SYSTEM_LOGICAL_PROCESSOR_INFORMATION_EX *>(buffer.data() + at)->Size;
        }
        return std::max(1, n);
    }
#endif
    const int threads = static_cast<int>(std::thread::hardware_concurrency());
    return std::max(1, threads > 4 ? threads / 2 : threads);
}

Compute::Compute(const Device & device, int n_threads) : device_(device) {
    backend_.reset(ggml_backend_dev_init(device.handle, nullptr));
    if (!backend_) {
        throw Error(DFLASH_DEVICE_FAILED, format("The device %s could not be started. Its driver may be missing or busy.", device.name.c_str()));
    }
    if (!device.is_cpu) {
        return;
    }
    const int threads = std::min(n_threads > 0 ? n_threads : physical_cores(), GGML_MAX_N_THREADS);
    const auto set_threads = cpu_function<ggml_backend_set_n_threads_t>(device.handle, "ggml_backend_set_n_threads");
    const auto new_pool = cpu_function<decltype(&ggml_threadpool_new)>(device.handle, "ggml_threadpool_new");
    const auto set_pool = cpu_function<decltype(&ggml_backend_cpu_set_threadpool)>(device.handle, "ggml_backend_cpu_set_threadpool");
    const auto set_abort = cpu_function<ggml_backend_set_abort_callback_t>(device.handle, "ggml_backend_set_abort_callback");
    free_pool_ = cpu_function<void (*)(void *)>(device.handle, "ggml_threadpool_free");
    if (!set_threads || !new_pool || !set_pool || !set_abort || !free_pool_) {
        throw Error(DFLASH_DEVICE_FAILED, "The CPU backend beside this library is of another release. Install the program again.");
    }
    set_threads(backend_.get(), threads);
    threads_ = ThreadCount(threads);
    set_threads_ = set_threads;
    // Without a pool of its own, ggml starts and joins threads for every graph (OpenMP is off).
    ggml_threadpool_params params = ggml_threadpool_params_default(threads);
    ggml_threadpool_t pool = new_pool(&params);
    if (!pool) {
        throw OutOfMemory(device, {DFLASH_PART_COMPUTE, "CPU threads"}, 0);
    }
    pool_ = pool;
    set_pool(backend_.get(), pool);
    set_abort(backend_.get(), is_cancel_wanted, &is_cancelled);
}

Compute::~Compute() {
    backend_.reset();
    if (pool_) {
        free_pool_(pool_);
    }
}

ggml_backend_buffer_type_t Compute::buffer_type() const {
    return ggml_backend_get_default_buffer_type(backend_.get());
}

void Compute::start(ggml_cgraph * graph, const Purpose & purpose) {
    if (is_cancelled.load(std::memory_order_relaxed)) {
        throw Error(DFLASH_CANCELLED, format("The %s was cancelled.", purpose.name));
    }
    const int64_t wall_start = now_us();
    const int64_t cpu_start = process_cpu_us();
    const ggml_status status = ggml_backend_graph_compute_async(backend_.get(), graph);
    if (set_threads_ && threads_.observe(us_since(wall_start), static_cast<double>(process_cpu_us() - cpu_start))) {
        set_threads_(backend_.get(), threads_.count());
    }
    switch (status) {
        case GGML_STATUS_SUCCESS: return;
        case GGML_STATUS_ABORTED: throw Error(DFLASH_CANCELLED, format("The %s was cancelled.", purpose.name));
        case GGML_STATUS_ALLOC_FAILED: throw OutOfMemory(device_, purpose, 0);
        default: throw Error(DFLASH_DEVICE_FAILED, format("The device %s failed during the %s.", device_.name.c_str(), purpose.name));
    }
}

void Compute::wait() {
    ggml_backend_synchronize(backend_.get());
    ++n_waits_;
}

// ggml's CUDA backend replays a captured graph without looking at its nodes when the graph carries the number it had
// last time. The only public call that gives it one is the split over backends, which splits nothing here.
void Compute::freeze(ggml_cgraph * graph) const {
    const bool is_known = device_.backend == "CUDA" || device_.backend == "ROCm" || device_.backend == "MUSA";
    if (!is_known || std::getenv("GGML_CUDA_GRAPH_OPT")) {
        return; // the split may reorder nodes, and their memory is laid out already
    }
    const ggml_backend_ptr cpu(ggml_backend_init_by_type(GGML_BACKEND_DEVICE_TYPE_CPU, nullptr));
    if (!cpu) {
        return; // slower, but right
    }
    std::array<ggml_backend_t, 2> backends = {backend_.get(), cpu.get()};
    const size_t n_tensors = 2 * static_cast<size_t>(ggml_graph_n_nodes(graph)) + 64; // leaves too
    const ggml_backend_sched_ptr splitter(ggml_backend_sched_new(backends.data(), nullptr, 2, n_tensors, false, false));
    if (splitter) {
        ggml_backend_sched_split_graph(splitter.get(), graph);
        if (ggml_backend_sched_get_n_splits(splitter.get()) != 1) {
            throw Error(DFLASH_INTERNAL, "A computation does not lie on one device.");
        }
    }
}

void Compute::require_support(const ggml_cgraph * graph, const char * what) const {
    auto * g = const_cast<ggml_cgraph *>(graph);
    for (int i = 0; checks_support_ && i < ggml_graph_n_nodes(g); ++i) {
        const ggml_tensor * node = ggml_graph_node(g, i);
        if (!ggml_backend_dev_supports_op(device_.handle, node)) {
            std::string inputs;
            for (int s = 0; s < GGML_MAX_SRC && node->src[s]; ++s) {
                inputs += std::string(s ? ", " : "") + ggml_type_name(node->src[s]->type);
            }
            throw Error(DFLASH_UNSUPPORTED, format("The device %s cannot run the %s of this model: operation %s on %s (%s).", device_.name.c_str(), what,
                                                   ggml_op_name(node->op), inputs.c_str(), node->name));
        }
    }
}

} // namespace dflash
