// Our progress monitor: an object with the layout of IProgressMonitor that records every callback, passes it on to the
// application's own monitor, and answers false once a stop was requested.
#pragma once

#include "library.h"
#include "recorder.h"

#include <cstdint>

namespace stuckproof {

struct Monitor {
    const void* const* table; // must stay first: this is the object's virtual table pointer
    const Layout* layout;
    Recorder* recorder;
    void* application;  // the application's own monitor, or null
    Monitor* displaced; // another of ours that the config held when this one was set, while it ran `displaced_build`
    std::uint32_t displaced_build;
    std::uint32_t build;
    std::uint32_t running;
    std::uint32_t messages[5]; // heard during the build, by severity
};

// Makes the table of the monitors for a library, with a type description borrowed from it. False when there is no room.
bool make_monitor_table(Library* library, const void* type);

// A monitor for one build. Monitors are never freed, since a library may hold on to one longer than we can know; after
// some thousands of builds the oldest that is not running is used again.
Monitor* new_monitor(Library* library, Recorder* recorder, std::uint32_t build);

// `monitor` as one of ours, or null when it is the application's.
Monitor* as_ours(void* monitor);

// The monitor of the build that this thread is in, or null; set around each call of a build method, so that a callback
// on the calling thread is the right build's even where two builds share one config.
Monitor* thread_monitor(const Recorder* recorder);
void set_thread_monitor(Monitor* monitor);

} // namespace stuckproof
