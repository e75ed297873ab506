// What the exported functions share: the handles, the checks of arguments, and how an exception becomes a status.
#pragma once

#include <cstring>
#include <memory>
#include <vector>

#include "draft.h"
#include "pflash.h"
#include "session.h"

struct dflash_file {
    std::shared_ptr<const dflash::ModelFile> file;
};

struct dflash_target {
    std::unique_ptr<dflash::Target> target;
    bool is_allocated = false;
};

struct dflash_draft {
    std::unique_ptr<dflash::Draft> draft;
    bool is_allocated = false;
};

struct dflash_session {
    std::unique_ptr<dflash::Session> session;
};

struct dflash_scorer {
    std::unique_ptr<dflash::Scorer> scorer;
};

namespace dflash {

// What this thread's last call failed with.
void forget_failure();
// Note the exception that is being handled: its status, its sentence and its numbers. Returns the status.
int32_t note_failure() noexcept;
const char * last_sentence();
const dflash_failure & last_numbers();

// The only try/catch around the engine: whatever happened inwards becomes a status and a sentence.
template <typename Function> int32_t guarded(Function && function) {
    forget_failure();
    try {
        return function();
    } catch (...) {
        return note_failure();
    }
}

inline void require(bool condition, const char * what) {
    if (!condition) {
        throw Error(DFLASH_BAD_ARGUMENT, what);
    }
}

template <typename Struct> void check_struct(const Struct * value, const char * name) {
    if (!value) {
        throw Error(DFLASH_BAD_ARGUMENT, format("%s is NULL.", name));
    }
    if (value->size != sizeof(Struct)) {
        throw Error(DFLASH_BAD_ARGUMENT,
                    format("%s.size is %u; this library's is %zu. Library and caller are of different releases.", name, value->size, sizeof(Struct)));
    }
}

// Outputs start from zero, whatever the caller left in them.
template <typename Struct> void clear_output(Struct * out, const char * name) {
    check_struct(out, name);
    std::memset(out, 0, sizeof(Struct));
    out->size = sizeof(Struct);
}

inline std::vector<int32_t> to_vector(const int32_t * values, int32_t n) {
    require(values && n > 0, "An array of tokens is NULL or empty.");
    return {values, values + n};
}

inline Session & session_of(const dflash_session * session) {
    require(session != nullptr, "The session is NULL.");
    return *session->session;
}

inline Scorer & scorer_of(const dflash_scorer * scorer) {
    require(scorer != nullptr, "The scorer is NULL.");
    return *scorer->scorer;
}

} // namespace dflash
