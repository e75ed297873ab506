// The log ring; see log.h.
#include "log.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <deque>
#include <exception>
#include <mutex>

#include "error.h"
#include "ggml.h"
#include "model_text.h"

namespace dflash {

namespace {

constexpr size_t kMaxLines = 1000;

struct Line {
    dflash_log_level level;
    std::string text;
};

std::mutex mutex;
std::deque<Line> lines;
std::string unfinished; // ggml logs pieces of a line
dflash_log_level unfinished_level = DFLASH_LOG_INFO;

std::array<char, 1024> abort_path = {}; // not a string: whoever dies must not depend on the heap

void push(dflash_log_level level, std::string text) {
    while (!text.empty() && (text.back() == '\n' || text.back() == '\r')) {
        text.pop_back();
    }
    if (text.empty()) {
        return;
    }
    lines.push_back({level, std::move(text)});
    if (lines.size() > kMaxLines) {
        lines.pop_front();
    }
}

void add_piece(ggml_log_level level, const char * text) {
    const std::lock_guard<std::mutex> lock(mutex);
    switch (level) {
        case GGML_LOG_LEVEL_DEBUG: unfinished_level = DFLASH_LOG_DEBUG; break;
        case GGML_LOG_LEVEL_WARN: unfinished_level = DFLASH_LOG_WARNING; break;
        case GGML_LOG_LEVEL_ERROR: unfinished_level = DFLASH_LOG_ERROR; break;
        case GGML_LOG_LEVEL_CONT: break;
        default: unfinished_level = DFLASH_LOG_INFO; break;
    }
    unfinished += text;
    if (!unfinished.empty() && unfinished.back() == '\n') {
        push(unfinished_level, std::move(unfinished));
        unfinished.clear();
    }
}

// Called from C, which no exception may pass: a line for which there is no memory is lost.
void on_ggml_log(ggml_log_level level, const char * text, void *) {
    try {
        add_piece(level, text);
    } catch (const std::exception &) {
        return;
    }
}

// The process ends right after this. No lock: the thread that dies may hold it.
void on_ggml_abort(const char * message) {
    std::fprintf(stderr, "%s\n", message);
    if (abort_path[0] == '\0') {
        return;
    }
    if (std::FILE * file = ggml_fopen(abort_path.data(), "ab")) {
        std::fprintf(file, "%s\n", message);
        std::fclose(file);
    }
}

} // namespace

void log_line(dflash_log_level level, const std::string & text) {
    const std::lock_guard<std::mutex> lock(mutex);
    push(level, text);
}

bool take_log_line(dflash_log_line & out) {
    const std::lock_guard<std::mutex> lock(mutex);
    if (lines.empty()) {
        return false;
    }
    const Line & line = lines.front();
    out.level = line.level;
    copy_text(out.text, sizeof(out.text), line.text);
    lines.pop_front();
    return true;
}

void capture_ggml_log() {
    ggml_log_set(on_ggml_log, nullptr);
}

void write_aborts_to(const std::string & path) {
    if (path.size() >= abort_path.size()) {
        throw Error(DFLASH_BAD_ARGUMENT, "The path of the file for last words is too long.");
    }
    abort_path.fill('\0');
    std::copy(path.begin(), path.end(), abort_path.begin());
    ggml_set_abort_callback(on_ggml_abort);
}

} // namespace dflash
