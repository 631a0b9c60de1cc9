// Observing a builder: its build methods, the monitor that they are given, and the application's logger.
#pragma once

#include <cstdint>

namespace stuckproof {

using CreateBuilder = void* (*)(void* logger, std::int32_t version);

// Makes a builder with the library's own function and observes it, if the library is one that we know to the slot.
// Otherwise, and whenever anything looks unlike the tables, the builder is returned as it is and the reason recorded.
void* create_observed(CreateBuilder real, void* logger, std::int32_t version);

// The library function behind a link-time call of createInferBuilder_INTERNAL, by the version that the caller passes.
CreateBuilder find_create(std::int32_t version);

} // namespace stuckproof
