#include "vtable.h"

#include "layouts.h"
#include "system.h"

namespace stuckproof {

namespace {

constexpr std::size_t kMaxCopies = 64;

VtableCopy* g_copies[kMaxCopies] = {};

VtableCopy* make_copy(const void* const* original, std::size_t at_least, IsSlot is_slot, const void* slot_context,
                      const Replacement* replacements, std::size_t replacement_count, void* context) {
    std::size_t slots = 0;
    while (slots < kMaxSlots && is_slot(&original[slots], slot_context)) {
        ++slots;
    }
    if (slots < at_least) {
        return nullptr;
    }
    auto* copy = static_cast<VtableCopy*>(sys::anonymous(sizeof(VtableCopy)));
    if (copy == nullptr) {
        return nullptr;
    }
    copy->original = original;
    copy->context = context;
    copy->slots = slots;
    copy->offset_to_top = reinterpret_cast<std::intptr_t>(original[-2]);
    copy->type = original[-1];
    for (std::size_t i = 0; i < slots; ++i) {
        copy->table[i] = original[i];
    }
    for (std::size_t i = 0; i < replacement_count; ++i) {
        if (replacements[i].slot != kNone) {
            copy->table[replacements[i].slot] = replacements[i].function;
        }
    }
    return copy;
}

} // namespace

const VtableCopy* copy_of(const void* const* original, std::size_t at_least, IsSlot is_slot, const void* slot_context,
                          const Replacement* replacements, std::size_t replacement_count, void* context) {
    for (VtableCopy*& place : g_copies) {
        VtableCopy* known = __atomic_load_n(&place, __ATOMIC_ACQUIRE);
        if (known == nullptr) {
            VtableCopy* fresh =
                make_copy(original, at_least, is_slot, slot_context, replacements, replacement_count, context);
            if (fresh == nullptr) {
                return nullptr;
            }
            if (__atomic_compare_exchange_n(&place, &known, fresh, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
                return fresh;
            }
            sys::unmap(fresh, sizeof(VtableCopy));
        }
        if (known->original == original && known->context == context) {
            return known;
        }
    }
    return nullptr;
}

bool is_copy(const void* const* table) {
    for (VtableCopy* const& place : g_copies) {
        const VtableCopy* known = __atomic_load_n(&place, __ATOMIC_ACQUIRE);
        if (known == nullptr) {
            return false;
        }
        if (known->table == table) {
            return true;
        }
    }
    return false;
}

} // namespace stuckproof
