// The recorder: one process's chain of segments, and the cancel word.
//
// Lock-free all the way: a slot is reserved by one atomic addition; a missing segment is created by whichever thread
// needs it first (two that race map the same file, the loser unmaps); names are interned by compare-and-swap. After a
// fork the child starts a chain of its own.
#pragma once

#include "wire.h"

#include <cstddef>
#include <cstdint>

namespace stuckproof {

constexpr std::size_t kMaxSegments = 4096;
constexpr std::size_t kNames = 4096;

struct Monitor;

struct Name {
    std::uint64_t hash;
    std::uint32_t told;
};

// What a process records into. Lives in an anonymous mapping for as long as the process does.
struct Recorder {
    std::uint32_t pid;
    std::uint32_t builds; // builds begun
    std::uint32_t active; // builds running now
    Monitor* latest;      // the monitor of the latest build
    std::uint64_t registered;
    std::uint64_t seed;
    std::uint64_t next; // slots reserved
    std::uint32_t unnamed;
    wire::Slot* segments[kMaxSegments];
    Name names[kNames];
};

// The fields that a record is made of, besides its kind.
struct Fields {
    std::uint32_t build = 0;
    std::uint32_t name = 0;
    std::uint32_t parent = 0;
    std::int32_t a = 0;
    std::uint32_t b = 0;
    std::uint64_t c = 0;
    std::uint64_t d = 0;
    std::uint64_t e = 0;
    std::uint8_t flags = 0;
};

// The recorder of this process, opened on first use and after a fork; null when this process is not observed (no wire
// folder in the environment, or the control page cannot be mapped).
Recorder* recorder();

// The control page; valid whenever recorder() is not null.
wire::Control* control();

// The number of the accepted request, or 0.
inline std::uint32_t cancel_word(const wire::Control* page) {
    return static_cast<std::uint32_t>(__atomic_load_n(&page->cancel, __ATOMIC_ACQUIRE));
}

// Writes one record.
void record(Recorder* r, wire::Kind kind, std::uint64_t at, const Fields& fields);

// Writes one record with a text, cut at wire::kMaxText.
void record_text(Recorder* r, wire::Kind kind, std::uint64_t at, Fields fields, const char* text, std::size_t bytes);

// The number of a name, told to the runner before the first record that uses it; 0 for a null pointer.
std::uint32_t intern(Recorder* r, const char* name);

} // namespace stuckproof
