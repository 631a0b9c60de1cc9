#include "library.h"

#include "system.h"
#include "text.h"

namespace stuckproof {

namespace {

constexpr std::size_t kMaxLibraries = 16;

Library* g_libraries[kMaxLibraries] = {};

const char* base_name(const char* path) {
    const char* base = path;
    for (const char* c = path; *c != '\0'; ++c) {
        if (*c == '/') {
            base = c + 1;
        }
    }
    return base;
}

int number(const elf::Object& object, const char* symbol) {
    auto* function = reinterpret_cast<std::int32_t (*)()>(elf::find(object, symbol));
    return function == nullptr ? -1 : function();
}

// 9.x has one number (9300 is 9.3.0); later versions have a function for each part.
void read_version(Library* library) {
    library->major = number(library->object, "getInferLibMajorVersion");
    library->minor = number(library->object, "getInferLibMinorVersion");
    library->patch = number(library->object, "getInferLibPatchVersion");
    library->build = number(library->object, "getInferLibBuildVersion");
    if (library->major < 0) {
        const int whole = number(library->object, "getInferLibVersion");
        if (whole >= 1000) {
            library->major = whole / 1000;
            library->minor = whole / 100 % 10;
            library->patch = whole % 100;
        }
    }
}

Library* make_known(const void* create) {
    elf::Object object;
    if (!elf::containing(create, &object)) {
        return nullptr;
    }
    Flavour flavour = Flavour::rtx;
    if (!is_flavour(object, &flavour)) {
        flavour = Flavour::tensorrt;
        if (!is_flavour(object, &flavour)) {
            return nullptr;
        }
    }
    auto* library = static_cast<Library*>(sys::anonymous(sizeof(Library)));
    if (library == nullptr) {
        return nullptr;
    }
    library->object = object;
    library->flavour = flavour;
    library->create = create;
    read_version(library);
    library->layout = find_layout(flavour, library->major, library->minor);
    library->facts = find_fact_layout(flavour, library->major, library->minor);
    return library;
}

} // namespace

bool is_flavour(const elf::Object& object, const void* wanted) {
    const char* base = base_name(object.name);
    const bool rtx = contains(base, "tensorrt_rtx");
    return *static_cast<const Flavour*>(wanted) == Flavour::rtx ? rtx : !rtx && contains(base, "nvinfer");
}

Library* library_of(const void* create) {
    for (Library*& place : g_libraries) {
        Library* known = __atomic_load_n(&place, __ATOMIC_ACQUIRE);
        if (known == nullptr) {
            Library* fresh = make_known(create);
            if (fresh == nullptr) {
                return nullptr;
            }
            if (__atomic_compare_exchange_n(&place, &known, fresh, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
                return fresh;
            }
            sys::unmap(fresh, sizeof(Library));
        }
        if (known->create == create) {
            return known;
        }
    }
    return nullptr;
}

bool is_library_code(const void* const* word, const void* library) {
    const elf::Object& object = static_cast<const Library*>(library)->object;
    return elf::is_inside(object, word) && elf::is_code(object, elf::word_at(word));
}

} // namespace stuckproof
