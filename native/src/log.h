// The log: lines of ours and of ggml wait in a ring until the app fetches them. Any thread.
#pragma once

#include <string>

#include "dflash.h"

namespace dflash {

void log_line(dflash_log_level level, const std::string & text);
// False when no line waits.
bool take_log_line(dflash_log_line & out);
// ggml_set_log: its lines go to the same ring instead of stderr.
void capture_ggml_log();

} // namespace dflash
