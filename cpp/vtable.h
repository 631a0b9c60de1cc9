// Copies of virtual tables, with some slots replaced.
//
// An object is observed by pointing it at a copy of its class's table. The copy keeps the words in front of the address
// point (offset to top, type), so that casts and type queries work as before, and carries before those the original and
// whatever the hooks need to know. Copies are immutable once published and are never freed.
#pragma once

#include "elf.h"

#include <cstddef>
#include <cstdint>

namespace stuckproof {

constexpr std::size_t kMaxSlots = 512;

struct VtableCopy {
    const void* const* original;
    void* context;
    std::uint64_t slots;
    std::intptr_t offset_to_top;
    const void* type;
    const void* table[kMaxSlots];
};

struct Replacement {
    std::uint8_t slot; // kNone: nothing to replace
    const void* function;
};

// The copy of a table with the replacements made; made once for each original. The table is taken to its real end, the
// first word that is no code: real tables can be longer than their interface. Null when it has fewer than `at_least`
// slots or there is no room. `is_slot` says whether a word may be read and is code.
using IsSlot = bool (*)(const void* const* word, const void* context);
const VtableCopy* copy_of(const void* const* original, std::size_t at_least, IsSlot is_slot, const void* slot_context,
                          const Replacement* replacements, std::size_t replacement_count, void* context);

// The copy that an object points at. Only for objects that do.
inline const VtableCopy* copy_behind(const void* object) {
    const auto table = *static_cast<const char* const*>(object);
    return reinterpret_cast<const VtableCopy*>(table - offsetof(VtableCopy, table));
}

// Whether the table is one of our copies.
bool is_copy(const void* const* table);

} // namespace stuckproof
