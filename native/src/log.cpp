// The log ring; see log.h.
#include "log.h"

#include <algorithm>
#include <cstring>
#include <deque>
#include <mutex>

#include "ggml.h"

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

void on_ggml_log(ggml_log_level level, const char * text, void *) {
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
    const size_t n = std::min(line.text.size(), sizeof(out.text) - 1);
    std::memcpy(out.text, line.text.data(), n);
    out.text[n] = '\0';
    lines.pop_front();
    return true;
}

void capture_ggml_log() {
    ggml_log_set(on_ggml_log, nullptr);
}

} // namespace dflash
