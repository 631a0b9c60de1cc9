// System calls without a C library: the attach library lives in other people's processes and must neither need a symbol
// that they may lack nor call one that they may have replaced.
#pragma once

#include <cstddef>
#include <cstdint>
#ifdef __SANITIZE_THREAD__
#include <sys/mman.h>
#endif

namespace stuckproof::sys {

// Numbers and flags of Linux on x86-64.
constexpr long kRead = 0;
constexpr long kClose = 3;
constexpr long kMmap = 9;
constexpr long kMunmap = 11;
constexpr long kPwrite = 18;
constexpr long kSchedYield = 24;
constexpr long kMadvise = 28;
constexpr long kGetpid = 39;
constexpr long kGetppid = 110;
constexpr long kGettid = 186;
constexpr long kOpenat = 257;
constexpr long kFallocate = 285;
constexpr long kPrlimit = 302;

constexpr long kAtCwd = -100;
constexpr long kReadWrite = 02;
constexpr long kCreate = 0100;
constexpr long kCloseOnExec = 02000000;
constexpr long kNoFollow = 0400000;
constexpr long kProtRead = 1;
constexpr long kProtWrite = 2;
constexpr long kMapShared = 1;
constexpr long kMapPrivate = 2;
constexpr long kMapAnonymous = 0x20;
constexpr long kPopulateWrite = 23;
constexpr long kLimitFileSize = 1;
constexpr long kTooLarge = 27;
constexpr long kNoSpace = 28;
constexpr long kNotSupported = 95;

inline long call(long number, long a = 0, long b = 0, long c = 0, long d = 0, long e = 0, long f = 0) {
    long result = 0;
    register long r10 asm("r10") = d;
    register long r8 asm("r8") = e;
    register long r9 asm("r9") = f;
    asm volatile("syscall"
                 : "=a"(result)
                 : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
                 : "rcx", "r11", "memory");
    return result;
}

inline bool failed(long result) { return result < 0 && result > -4096; }

inline void* map(std::size_t bytes, long protection, long flags, long fd) {
    const long result = call(kMmap, 0, static_cast<long>(bytes), protection, flags, fd, 0);
    return failed(result) ? nullptr : reinterpret_cast<void*>(result);
}

inline void unmap(void* at, std::size_t bytes) {
#ifdef __SANITIZE_THREAD__
    // The sanitizer does not see a raw call, and would take the next user of these pages for one of the same memory. It
    // forgets whole pages only.
    munmap(at, (bytes + 4095) / 4096 * 4096);
#else
    call(kMunmap, reinterpret_cast<long>(at), static_cast<long>(bytes));
#endif
}

inline void* anonymous(std::size_t bytes) {
    return map(bytes, kProtRead | kProtWrite, kMapPrivate | kMapAnonymous, -1);
}

inline std::uint32_t pid() { return static_cast<std::uint32_t>(call(kGetpid)); }
inline std::uint32_t parent_pid() { return static_cast<std::uint32_t>(call(kGetppid)); }
inline std::uint32_t tid() { return static_cast<std::uint32_t>(call(kGettid)); }

// CLOCK_MONOTONIC in nanoseconds. The one C library function on the callback's way: it stays out of the kernel.
std::uint64_t now();

} // namespace stuckproof::sys
