// From exceptions to statuses; see boundary.h.
#include "boundary.h"

#include <new>
#include <string>

#include "log.h"
#include "memory.h"

namespace dflash {

namespace {

// What is said where there is no memory even for a sentence.
constexpr const char * kNoMemory = "Not enough memory.";

dflash_failure numbers_of(dflash_status status) {
    dflash_failure numbers = {};
    numbers.size = sizeof(numbers);
    numbers.status = status;
    numbers.device = -1;
    return numbers;
}

struct Failure {
    std::string sentence;
    const char * fixed = nullptr; // in place of the sentence
    dflash_failure numbers = numbers_of(DFLASH_OK);
};

thread_local Failure last;

void note(const Error & error) {
    last.numbers = numbers_of(error.status());
    last.sentence = error.what();
}

void note_bug(const std::string & sentence) {
    last.numbers = numbers_of(DFLASH_INTERNAL);
    last.sentence = sentence;
    log_line(DFLASH_LOG_ERROR, sentence);
}

// Memory of the computer, of which nobody says how much was asked for.
void note_no_memory() {
    const OutOfMemory failure(cpu_device(), {DFLASH_PART_UNKNOWN, "work at hand"}, 0);
    note(failure);
    last.numbers = failure.numbers();
}

} // namespace

void forget_failure() {
    last.numbers = numbers_of(DFLASH_OK);
    last.sentence.clear();
    last.fixed = nullptr;
}

int32_t note_failure() noexcept {
    try {
        try {
            throw;
        } catch (const OutOfMemory & error) {
            note(error);
            last.numbers = error.numbers();
        } catch (const Error & error) {
            note(error);
        } catch (const std::bad_alloc &) {
            note_no_memory();
        } catch (const std::exception & error) {
            note_bug(std::string("The engine met a bug: ") + error.what());
        } catch (...) {
            note_bug("The engine met a bug.");
        }
    } catch (...) {
        last.numbers = numbers_of(DFLASH_OUT_OF_MEMORY);
        last.fixed = kNoMemory;
    }
    return last.numbers.status;
}

const char * last_sentence() {
    return last.fixed ? last.fixed : last.sentence.c_str();
}

const dflash_failure & last_numbers() {
    return last.numbers;
}

} // namespace dflash
