#include "elf.h"

#include "text.h"

#include <link.h>

extern "C" {
extern unsigned long getauxval(unsigned long) noexcept __attribute__((weak));
extern int dl_iterate_phdr(int (*)(dl_phdr_info*, std::size_t, void*), void*) noexcept __attribute__((weak));
}
extern Elf64_Dyn _DYNAMIC[] __attribute__((visibility("hidden")));

namespace stuckproof::elf {

namespace {

constexpr unsigned long kAuxProgramHeaders = 3;
constexpr unsigned long kAuxProgramHeaderCount = 5;

struct Tables {
    const Elf64_Sym* symbols = nullptr;
    const char* strings = nullptr;
    const std::uint32_t* gnu_hash = nullptr;
    const std::uint32_t* hash = nullptr;
};

// glibc relocates these pointers in place, musl and the vDSO leave them relative to the base.
template <class T> const T* at(const Object& object, Elf64_Addr value) {
    return reinterpret_cast<const T*>(value < object.base ? object.base + value : value);
}

Tables tables(const Object& object) {
    Tables found;
    for (const Elf64_Dyn* entry = object.dynamic; entry != nullptr && entry->d_tag != DT_NULL; ++entry) {
        switch (entry->d_tag) {
        case DT_SYMTAB: found.symbols = at<Elf64_Sym>(object, entry->d_un.d_ptr); break;
        case DT_STRTAB: found.strings = at<char>(object, entry->d_un.d_ptr); break;
        case DT_GNU_HASH: found.gnu_hash = at<std::uint32_t>(object, entry->d_un.d_ptr); break;
        case DT_HASH: found.hash = at<std::uint32_t>(object, entry->d_un.d_ptr); break;
        default: break;
        }
    }
    return found;
}

void* function(const Object& object, const Tables& in, std::uint32_t index, const char* symbol) {
    const Elf64_Sym& entry = in.symbols[index];
    if (entry.st_shndx == SHN_UNDEF || ELF64_ST_TYPE(entry.st_info) != STT_FUNC ||
        !same(in.strings + entry.st_name, symbol)) {
        return nullptr;
    }
    return reinterpret_cast<void*>(object.base + entry.st_value);
}

void* find_gnu(const Object& object, const Tables& in, const char* symbol) {
    std::uint32_t wanted = 5381;
    for (const char* c = symbol; *c != '\0'; ++c) {
        wanted = wanted * 33 + static_cast<unsigned char>(*c);
    }
    const std::uint32_t buckets = in.gnu_hash[0];
    const std::uint32_t first = in.gnu_hash[1];
    const std::uint32_t bloom_words = in.gnu_hash[2];
    const std::uint32_t* bucket = in.gnu_hash + 4 + bloom_words * 2;
    const std::uint32_t* chain = bucket + buckets;
    if (buckets == 0) {
        return nullptr;
    }
    for (std::uint32_t index = bucket[wanted % buckets]; index >= first; ++index) {
        const std::uint32_t hashed = chain[index - first];
        if ((hashed | 1U) == (wanted | 1U)) {
            if (void* address = function(object, in, index, symbol)) {
                return address;
            }
        }
        if ((hashed & 1U) != 0) {
            break;
        }
    }
    return nullptr;
}

void* find_sysv(const Object& object, const Tables& in, const char* symbol) {
    for (std::uint32_t index = 1; index < in.hash[1]; ++index) {
        if (void* address = function(object, in, index, symbol)) {
            return address;
        }
    }
    return nullptr;
}

Object from(const dl_phdr_info& info) {
    Object object;
    object.base = info.dlpi_addr;
    object.name = info.dlpi_name == nullptr ? "" : info.dlpi_name;
    object.headers = info.dlpi_phdr;
    object.header_count = info.dlpi_phnum;
    for (std::size_t i = 0; i < object.header_count; ++i) {
        if (object.headers[i].p_type == PT_DYNAMIC) {
            object.dynamic = reinterpret_cast<const Elf64_Dyn*>(object.base + object.headers[i].p_vaddr);
        }
    }
    return object;
}

bool in_segment(const Object& object, const void* address, Elf64_Word flags) {
    const auto wanted = reinterpret_cast<std::uintptr_t>(address);
    for (std::size_t i = 0; i < object.header_count; ++i) {
        const Elf64_Phdr& header = object.headers[i];
        const std::uintptr_t start = object.base + header.p_vaddr;
        if (header.p_type == PT_LOAD && (header.p_flags & flags) == flags && wanted >= start &&
            wanted - start < header.p_memsz) {
            return true;
        }
    }
    return false;
}

struct Search {
    const void* address;
    const char* symbol;
    Accepts accepts;
    const void* wanted;
    Object* out;
};

int visit_containing(dl_phdr_info* info, std::size_t /*size*/, void* data) {
    const auto* search = static_cast<const Search*>(data);
    const Object object = from(*info);
    if (!in_segment(object, search->address, 0)) {
        return 0;
    }
    *search->out = object;
    return 1;
}

int visit_defining(dl_phdr_info* info, std::size_t /*size*/, void* data) {
    const auto* search = static_cast<const Search*>(data);
    const Object object = from(*info);
    if (object.dynamic == _DYNAMIC || find(object, search->symbol) == nullptr ||
        !search->accepts(object, search->wanted)) {
        return 0;
    }
    *search->out = object;
    return 1;
}

const r_debug* loader_list() {
    if (&getauxval == nullptr) {
        return nullptr;
    }
    const auto* headers = reinterpret_cast<const Elf64_Phdr*>(getauxval(kAuxProgramHeaders));
    const std::size_t count = getauxval(kAuxProgramHeaderCount);
    const Elf64_Phdr* dynamic = nullptr;
    std::uintptr_t base = 0;
    for (std::size_t i = 0; headers != nullptr && i < count; ++i) {
        if (headers[i].p_type == PT_PHDR) {
            base = reinterpret_cast<std::uintptr_t>(headers) - headers[i].p_vaddr;
        } else if (headers[i].p_type == PT_DYNAMIC) {
            dynamic = &headers[i];
        }
    }
    if (dynamic == nullptr) {
        return nullptr;
    }
    for (auto* entry = reinterpret_cast<const Elf64_Dyn*>(base + dynamic->p_vaddr); entry->d_tag != DT_NULL; ++entry) {
        if (entry->d_tag == DT_DEBUG) {
            return reinterpret_cast<const r_debug*>(entry->d_un.d_ptr);
        }
    }
    return nullptr;
}

} // namespace

void* find(const Object& object, const char* symbol) {
    const Tables in = tables(object);
    if (in.symbols == nullptr || in.strings == nullptr) {
        return nullptr;
    }
    if (in.gnu_hash != nullptr) {
        return find_gnu(object, in, symbol);
    }
    return in.hash == nullptr ? nullptr : find_sysv(object, in, symbol);
}

bool is_code(const Object& object, const void* address) { return in_segment(object, address, PF_X); }

bool is_inside(const Object& object, const void* address) { return in_segment(object, address, 0); }

bool containing(const void* address, Object* out) {
    Search search = {address, nullptr, nullptr, nullptr, out};
    return &dl_iterate_phdr != nullptr && dl_iterate_phdr(visit_containing, &search) == 1;
}

bool first_defining(const char* symbol, Accepts accepts, const void* wanted, Object* out) {
    Search search = {nullptr, symbol, accepts, wanted, out};
    return &dl_iterate_phdr != nullptr && dl_iterate_phdr(visit_defining, &search) == 1;
}

// The head of the list, up to the C library, never changes after start-up, so it may be walked without the loader's
// lock.
void* next_dlsym() {
    const r_debug* list = loader_list();
    if (list == nullptr) {
        return nullptr;
    }
    bool after_us = false;
    for (const link_map* map = list->r_map; map != nullptr; map = map->l_next) {
        if (map->l_ld == _DYNAMIC) {
            after_us = true;
            continue;
        }
        if (after_us) {
            Object object;
            object.base = map->l_addr;
            object.dynamic = map->l_ld;
            if (void* address = find(object, "dlsym")) {
                return address;
            }
        }
    }
    return nullptr;
}

} // namespace stuckproof::elf
