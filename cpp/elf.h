// Loaded objects, read from memory: where a symbol is, and whose code an address is.
#pragma once

#include <elf.h>
#include <cstddef>
#include <cstdint>

namespace stuckproof::elf {

// A loaded object. `name` belongs to the loader and is valid as long as the object stays loaded.
struct Object {
    std::uintptr_t base = 0;
    const char* name = nullptr;
    const Elf64_Dyn* dynamic = nullptr;
    const Elf64_Phdr* headers = nullptr;
    std::size_t header_count = 0;
};

// The address of a function that the object defines, or null.
void* find(const Object& object, const char* symbol);

// Whether the address lies in the object's code.
bool is_code(const Object& object, const void* address);

// Whether the address lies anywhere in the object.
bool is_inside(const Object& object, const void* address);

// The word at an address, which must lie in a loaded object. Looking for the end of a table reads the word behind it,
// which a sanitizer rightly calls out in anybody else's code.
__attribute__((no_sanitize("address"))) inline const void* word_at(const void* const* address) { return *address; }

// The loaded object that holds the address; false when none does.
bool containing(const void* address, Object* out);

// The first loaded object other than this library that defines createInferBuilder_INTERNAL, is of the flavour that
// `accepts` likes, and stays at its place while the caller uses it.
using Accepts = bool (*)(const Object& object, const void* wanted);
bool first_defining(const char* symbol, Accepts accepts, const void* wanted, Object* out);

// The C library's dlsym: the first one that follows this library in the order of loading. Reads the loader's list
// through the auxiliary vector and calls nothing else, since a sanitizer's start-up passes here before anything is
// ready.
void* next_dlsym();

} // namespace stuckproof::elf
