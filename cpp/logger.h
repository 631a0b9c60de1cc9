// The application's logger: its messages are recorded on their way to it.
#pragma once

#include "library.h"

#include <cstdint>

namespace stuckproof {

// Points the application's logger object at a copy of its virtual table in which `log` records first. Returns why that
// was not done, or null when it was.
const char* observe_logger(Library* library, void* logger);

} // namespace stuckproof
