// What a builder was about to build, asked of the builder itself at the start of a build.
#pragma once

#include "library.h"
#include "recorder.h"

#include <cstdint>

namespace stuckproof {

// Records the configuration, the network's inputs, outputs and kinds of layers, and the profiles, as pairs of text
// under the build's number. Only plain getters are called.
void record_facts(Recorder* recorder, Library* library, std::uint32_t build, void* network, void* config);

// Observes a new configuration, so that the profiles added to it are known: no configuration tells them itself.
void observe_config(Library* library, void* config);

} // namespace stuckproof
