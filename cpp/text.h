// Strings without a C library.
#pragma once

#include <emmintrin.h>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace stuckproof {

// The length of a C string. Aligned 16-byte loads never cross into a page that the string does not touch, but they do
// read past its end, which AddressSanitizer rightly calls out in anybody else's code.
__attribute__((no_sanitize("address", "thread"))) inline std::size_t length(const char* text) {
    const auto address = reinterpret_cast<std::uintptr_t>(text);
    const std::uintptr_t aligned = address & ~static_cast<std::uintptr_t>(15);
    const __m128i zero = _mm_setzero_si128();
    auto mask = static_cast<unsigned>(
        _mm_movemask_epi8(_mm_cmpeq_epi8(_mm_load_si128(reinterpret_cast<const __m128i*>(aligned)), zero)));
    mask >>= address - aligned;
    if (mask != 0) {
        return static_cast<std::size_t>(__builtin_ctz(mask));
    }
    for (std::uintptr_t at = aligned + 16;; at += 16) {
        mask = static_cast<unsigned>(
            _mm_movemask_epi8(_mm_cmpeq_epi8(_mm_load_si128(reinterpret_cast<const __m128i*>(at)), zero)));
        if (mask != 0) {
            return at - address + static_cast<std::size_t>(__builtin_ctz(mask));
        }
    }
}

inline bool same(const char* left, const char* right) {
    while (*left != '\0' && *left == *right) {
        ++left;
        ++right;
    }
    return *left == *right;
}

inline bool contains(const char* text, const char* part) {
    for (; *text != '\0'; ++text) {
        std::size_t i = 0;
        while (part[i] != '\0' && text[i] == part[i]) {
            ++i;
        }
        if (part[i] == '\0') {
            return true;
        }
    }
    return false;
}

inline std::uint64_t hash(const char* text, std::size_t bytes, std::uint64_t seed) {
    constexpr std::uint64_t kOdd = 0xD6E8FEB86659FD93ULL;
    std::uint64_t h = seed ^ (bytes * kOdd);
    std::size_t i = 0;
    for (; i + 8 <= bytes; i += 8) {
        std::uint64_t word = 0;
        __builtin_memcpy(&word, text + i, 8);
        h = (h ^ word) * kOdd;
        h ^= h >> 32U;
    }
    if (i < bytes) {
        std::uint64_t word = 0;
        for (std::size_t j = 0; i + j < bytes; ++j) {
            word |= static_cast<std::uint64_t>(static_cast<unsigned char>(text[i + j])) << (8 * j);
        }
        h = (h ^ word) * kOdd;
        h ^= h >> 32U;
    }
    h *= kOdd;
    h ^= h >> 29U;
    return h == 0 ? 1 : h;
}

// A text in a fixed buffer; what does not fit is dropped.
template <std::size_t kCapacity> class Text {
  public:
    Text& add(const char* part) { return add(part, length(part)); }

    Text& add(const char* part, std::size_t bytes) {
        for (std::size_t i = 0; i < bytes && size_ + 1 < kCapacity; ++i) {
            data_[size_++] = part[i];
        }
        data_[size_] = '\0';
        return *this;
    }

    Text& end() {
        if (size_ + 1 < kCapacity) {
            data_[size_++] = '\0';
        }
        return *this;
    }

    Text& add_number(std::uint64_t value, unsigned base = 10, unsigned digits = 1) {
        char reversed[24];
        unsigned count = 0;
        while (value != 0 || count < digits) {
            reversed[count++] = "0123456789abcdef"[value % base];
            value /= base;
        }
        while (count > 0) {
            add(&reversed[--count], 1);
        }
        return *this;
    }

    const char* data() const { return data_; }
    std::size_t size() const { return size_; }

  private:
    char data_[kCapacity] = {};
    std::size_t size_ = 0;
};

} // namespace stuckproof
