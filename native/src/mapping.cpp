// Mapping through the system's own calls; see mapping.h.

#include "mapping.h"

#include <algorithm>
#include <system_error>

#include "memory.h"
#include "model_text.h"

#if defined(_WIN32)
#  define WIN32_LEAN_AND_MEAN
#  ifndef NOMINMAX // libstdc++ for Windows defines it as well
#    define NOMINMAX
#  endif
#  include <windows.h>
#else
#  include <cerrno>
#  include <fcntl.h>
#  include <sys/mman.h>
#  include <sys/stat.h>
#  include <unistd.h>
#endif

namespace dflash {

namespace {

[[noreturn]] void refuse_path(const std::string & path, const std::string & why) {
    throw Error(DFLASH_BAD_FILE, file_name(path) + ": " + why);
}

// The file is not to blame.
[[noreturn]] void refuse_for_memory(const std::string & path, uint64_t n_bytes) {
    throw OutOfMemory(cpu_device(), {DFLASH_PART_WEIGHTS, ("file " + file_name(path)).c_str()}, n_bytes);
}

} // namespace

#if defined(_WIN32)

namespace {

std::wstring wide_path(const std::string & path) {
    const int n_in = static_cast<int>(std::min<size_t>(path.size(), 32767));
    const int n = MultiByteToWideChar(CP_UTF8, MB_ERR_INVALID_CHARS, path.data(), n_in, nullptr, 0);
    if (n <= 0 || path.size() > 32767) {
        refuse_path(path, "the path is not valid text");
    }
    std::wstring wide(static_cast<size_t>(n), L'\0');
    MultiByteToWideChar(CP_UTF8, MB_ERR_INVALID_CHARS, path.data(), n_in, &wide[0], n);
    if (wide.size() < 240 || wide.compare(0, 4, L"\\\\?\\") == 0) {
        return wide;
    }
    // Beyond 260 characters Windows wants the full path with a prefix.
    const DWORD n_full = GetFullPathNameW(wide.c_str(), 0, nullptr, nullptr);
    std::wstring full(n_full, L'\0');
    full.resize(GetFullPathNameW(wide.c_str(), n_full, &full[0], nullptr));
    return full.compare(0, 2, L"\\\\") == 0 ? L"\\\\?\\UNC\\" + full.substr(2) : L"\\\\?\\" + full;
}

std::string last_reason() {
    const DWORD code = GetLastError();
    switch (code) {
        case ERROR_FILE_NOT_FOUND:
        case ERROR_PATH_NOT_FOUND: return "there is no such file";
        case ERROR_ACCESS_DENIED: return "access is denied";
        case ERROR_SHARING_VIOLATION: return "another program is using it";
        default: return format("Windows error %lu", static_cast<unsigned long>(code));
    }
}

} // namespace

Mapping::Mapping(const std::string & path) {
    HANDLE file =
        CreateFileW(wide_path(path).c_str(), GENERIC_READ, FILE_SHARE_READ | FILE_SHARE_DELETE, nullptr, OPEN_EXISTING, FILE_ATTRIBUTE_NORMAL, nullptr);
    if (file == INVALID_HANDLE_VALUE) {
        refuse_path(path, "cannot be opened: " + last_reason());
    }
    LARGE_INTEGER size;
    if (!GetFileSizeEx(file, &size)) {
        const std::string reason = last_reason();
        CloseHandle(file);
        refuse_path(path, "cannot be read: " + reason);
    }
    file_ = file;
    size_ = static_cast<uint64_t>(size.QuadPart);
    if (size_ == 0) {
        return;
    }
    HANDLE mapping = CreateFileMappingW(file, nullptr, PAGE_READONLY, 0, 0, nullptr);
    const void * data = mapping != nullptr ? MapViewOfFile(mapping, FILE_MAP_READ, 0, 0, 0) : nullptr;
    if (data == nullptr) {
        const DWORD code = GetLastError();
        const std::string reason = last_reason();
        if (mapping != nullptr) {
            CloseHandle(mapping);
        }
        CloseHandle(file);
        if (code == ERROR_NOT_ENOUGH_MEMORY || code == ERROR_COMMITMENT_LIMIT) {
            refuse_for_memory(path, size_);
        }
        refuse_path(path, "cannot be mapped into memory: " + reason);
    }
    mapping_ = mapping;
    data_ = static_cast<const uint8_t *>(data);
}

bool is_folder(const std::string & path) {
    const DWORD attributes = GetFileAttributesW(wide_path(path).c_str());
    return attributes != INVALID_FILE_ATTRIBUTES && (attributes & FILE_ATTRIBUTE_DIRECTORY) != 0;
}

bool is_file(const std::string & path) {
    const DWORD attributes = GetFileAttributesW(wide_path(path).c_str());
    return attributes != INVALID_FILE_ATTRIBUTES && (attributes & FILE_ATTRIBUTE_DIRECTORY) == 0;
}

Mapping::~Mapping() {
    if (data_ != nullptr) {
        UnmapViewOfFile(data_);
        CloseHandle(mapping_);
    }
    CloseHandle(file_);
}

#else

namespace {

std::string reason_of(int code) {
    if (code == ENOENT || code == ENOTDIR) {
        return "there is no such file";
    }
    return std::generic_category().message(code);
}

} // namespace

Mapping::Mapping(const std::string & path) {
    const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK); // a pipe must not keep us waiting
    if (file < 0) {
        refuse_path(path, "cannot be opened: " + reason_of(errno));
    }
    struct stat status = {};
    std::string why;
    bool is_memory_short = false;
    if (::fstat(file, &status) != 0) {
        why = "cannot be read: " + reason_of(errno);
    } else if (S_ISDIR(status.st_mode)) {
        why = "is a folder, not a file";
    } else if (!S_ISREG(status.st_mode)) {
        why = "is not an ordinary file";
    } else if (status.st_size > 0) {
        size_ = static_cast<uint64_t>(status.st_size);
        void * data = ::mmap(nullptr, static_cast<size_t>(size_), PROT_READ, MAP_PRIVATE, file, 0);
        if (data == MAP_FAILED) {
            is_memory_short = errno == ENOMEM;
            why = "cannot be mapped into memory: " + reason_of(errno);
        } else {
            data_ = static_cast<const uint8_t *>(data);
        }
    }
    ::close(file);
    if (is_memory_short) {
        refuse_for_memory(path, size_);
    }
    if (!why.empty()) {
        refuse_path(path, why);
    }
}

bool is_folder(const std::string & path) {
    struct stat status = {};
    return ::stat(path.c_str(), &status) == 0 && S_ISDIR(status.st_mode);
}

bool is_file(const std::string & path) {
    struct stat status = {};
    return ::stat(path.c_str(), &status) == 0 && S_ISREG(status.st_mode);
}

Mapping::~Mapping() {
    if (data_ != nullptr) {
        ::munmap(const_cast<uint8_t *>(data_), static_cast<size_t>(size_));
    }
}

#endif

} // namespace dflash
