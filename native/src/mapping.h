// A file mapped into memory to be read, and what lies at a path. Paths are UTF-8 on every system.
#pragma once

#include <cstdint>
#include <string>

namespace dflash {

// A read-only mapping of a whole file.
class Mapping {
  public:
    explicit Mapping(const std::string & path); // throws BAD_FILE with the system's reason, or OUT_OF_MEMORY
    ~Mapping();
    Mapping(const Mapping &) = delete;
    Mapping & operator=(const Mapping &) = delete;
    const uint8_t * data() const { return data_; }
    uint64_t size() const { return size_; }

  private:
    const uint8_t * data_ = nullptr;
    uint64_t size_ = 0;
#if defined(_WIN32)
    void * file_ = nullptr;
    void * mapping_ = nullptr;
#endif
};

// False when there is nothing at the path.
bool is_folder(const std::string & path);
bool is_file(const std::string & path);

} // namespace dflash
