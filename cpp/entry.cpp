// What the attach library exports: the function that makes builders, for callers that link it, and dlsym, for callers
// that look it up.
#include "builder.h"
#include "elf.h"
#include "text.h"

#include <cstddef>
#include <cstdint>
#include <utility>

namespace {

constexpr const char* kCreate = "createInferBuilder_INTERNAL";
constexpr std::size_t kMaxReal = 16;
void* const kNext = reinterpret_cast<void*>(-1L); // RTLD_NEXT

using stuckproof::CreateBuilder;
using Dlsym = void* (*)(void* handle, const char* symbol);

void* g_dlsym = nullptr;
CreateBuilder g_real[kMaxReal] = {};

Dlsym real_dlsym() {
    void* known = __atomic_load_n(&g_dlsym, __ATOMIC_ACQUIRE);
    if (known == nullptr) {
        known = stuckproof::elf::next_dlsym();
        __atomic_store_n(&g_dlsym, known, __ATOMIC_RELEASE);
    }
    return reinterpret_cast<Dlsym>(known);
}

// One entry point for each library that was looked up, since the caller gets a bare function pointer.
template <std::size_t kIndex> void* create_via(void* logger, std::int32_t version) noexcept {
    return stuckproof::create_observed(__atomic_load_n(&g_real[kIndex], __ATOMIC_ACQUIRE), logger, version);
}

template <std::size_t... kIndex> CreateBuilder entry_point(std::size_t wanted, std::index_sequence<kIndex...> /*all*/) {
    constexpr CreateBuilder kEntries[] = {create_via<kIndex>...};
    return kEntries[wanted];
}

void* wrap(void* found) {
    auto real = reinterpret_cast<CreateBuilder>(found);
    for (std::size_t i = 0; i < kMaxReal; ++i) {
        CreateBuilder known = __atomic_load_n(&g_real[i], __ATOMIC_ACQUIRE);
        if (known == nullptr &&
            __atomic_compare_exchange_n(&g_real[i], &known, real, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
            known = real;
        }
        if (known == real) {
            return reinterpret_cast<void*>(entry_point(i, std::make_index_sequence<kMaxReal>()));
        }
    }
    return found;
}

} // namespace

extern "C" {

__attribute__((visibility("default"))) void* createInferBuilder_INTERNAL(void* logger, std::int32_t version) noexcept {
    const CreateBuilder real = stuckproof::find_create(version);
    return real == nullptr ? nullptr : stuckproof::create_observed(real, logger, version);
}

// What the assembly below acts on: a function to jump to, or else the answer.
struct Route {
    void* jump;
    void* answer;
};

__attribute__((visibility("hidden"), used)) Route stuckproof_route(void* handle, const char* symbol) noexcept {
    const Dlsym real = real_dlsym();
    if (symbol == nullptr || !stuckproof::same(symbol, kCreate)) {
        return {reinterpret_cast<void*>(real), nullptr};
    }
    void* found = real == nullptr ? nullptr : real(handle, symbol);
    if (found == reinterpret_cast<void*>(createInferBuilder_INTERNAL)) {
        // A search of the whole process met ours. What matters to the caller is whether there is one behind it.
        found = real(kNext, symbol);
    }
    return {nullptr, found == nullptr ? nullptr : wrap(found)};
}
}

// dlsym(RTLD_NEXT, ...) answers by the address that it returns to. Everybody else's lookups must therefore leave by a
// jump, with the caller's own return address still on the stack; a compiler does not promise that, so it is written
// out.
asm(R"(
    .text
    .globl dlsym
    .type dlsym, @function
dlsym:
    .cfi_startproc
    endbr64
    pushq %rdi
    .cfi_adjust_cfa_offset 8
    pushq %rsi
    .cfi_adjust_cfa_offset 8
    subq $8, %rsp
    .cfi_adjust_cfa_offset 8
    call stuckproof_route
    addq $8, %rsp
    .cfi_adjust_cfa_offset -8
    popq %rsi
    .cfi_adjust_cfa_offset -8
    popq %rdi
    .cfi_adjust_cfa_offset -8
    testq %rax, %rax
    je 1f
    jmp *%rax
1:
    movq %rdx, %rax
    ret
    .cfi_endproc
    .size dlsym, . - dlsym
)");
