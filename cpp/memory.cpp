// The four functions that a compiler may call on its own, so that the library needs them from nobody.
#include <cstddef>

extern "C" {

void* memcpy(void* __restrict to, const void* __restrict from, std::size_t bytes) {
    void* result = to;
    asm volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(bytes) : : "memory");
    return result;
}

void* memset(void* to, int value, std::size_t bytes) {
    void* result = to;
    asm volatile("rep stosb" : "+D"(to), "+c"(bytes) : "a"(value) : "memory");
    return result;
}

void* memmove(void* to, const void* from, std::size_t bytes) {
    auto* target = static_cast<unsigned char*>(to);
    const auto* source = static_cast<const unsigned char*>(from);
    if (target <= source) {
        return memcpy(to, from, bytes);
    }
    while (bytes-- > 0) {
        target[bytes] = source[bytes];
    }
    return to;
}

int memcmp(const void* left, const void* right, std::size_t bytes) {
    const auto* a = static_cast<const unsigned char*>(left);
    const auto* b = static_cast<const unsigned char*>(right);
    for (std::size_t i = 0; i < bytes; ++i) {
        if (a[i] != b[i]) {
            return a[i] < b[i] ? -1 : 1;
        }
    }
    return 0;
}
}
