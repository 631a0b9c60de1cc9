// A builder library in this process: what it is and how its tables are laid out.
#pragma once

#include "elf.h"
#include "fact_layouts.h"
#include "layouts.h"

#include <cstdint>

namespace stuckproof {

// The vtable of our own monitors for one library: it carries a type description borrowed from that library, so that a
// caller who asks what the object is (a Python binding does) gets an answer instead of a crash.
struct MonitorTable {
    std::intptr_t offset_to_top;
    const void* type;
    const void* slots[8];
};

struct Library {
    elf::Object object;
    const Layout* layout;    // null when this version is not in the table
    const FactLayout* facts; // null when what it builds cannot be asked
    int major;
    int minor;
    int patch;
    int build;
    Flavour flavour;
    const void* create;          // its createInferBuilder_INTERNAL, which identifies it
    std::uint32_t told_by;       // the pid that recorded it
    MonitorTable* monitor_table; // made once a builder of it was observed
};

// The library that a creation function belongs to; made known on first sight, null when it is no builder library or
// there are too many.
Library* library_of(const void* create);

// Whether the object is a builder library of the flavour (`wanted` points to a Flavour).
bool is_flavour(const elf::Object& object, const void* wanted);

// Whether a word that lies in the library holds the address of its code; both the word and the `Library` as a table
// copy passes them.
bool is_library_code(const void* const* word, const void* library);

} // namespace stuckproof
