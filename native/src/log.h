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
// What ggml says before it ends the process goes to stderr and to the end of that file. Throws BAD_ARGUMENT.
void write_aborts_to(const std::string & path);

} // namespace dflash
