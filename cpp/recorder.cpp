#include "recorder.h"

#include "system.h"
#include "text.h"

#include <ctime>

extern "C" {
extern char** environ __attribute__((weak));
// NOLINTNEXTLINE: declared weak on purpose, so that nothing is required of the process.
extern int clock_gettime(clockid_t, timespec*) noexcept __attribute__((weak));
}

namespace stuckproof {

namespace {

constexpr const char* kFolderVariable = "STUCKPROOF_WIRE=";
constexpr std::size_t kMaxPath = 4000;
// A segment that could not be made. Its records are lost and counted; the next segment is tried anew.
wire::Slot* const kUnavailable = reinterpret_cast<wire::Slot*>(1);

Recorder* g_recorder = nullptr;
wire::Control* g_control = nullptr;
std::uint32_t g_opening = 0; // the pid of the process whose thread is opening the recorder, or 0
std::uint32_t g_disabled_for = 0;
char g_folder[kMaxPath] = {};

// A thread's number, cached. A cache filled before a fork names another recorder and is not used.
struct Thread {
    const Recorder* of;
    std::uint32_t tid;
};
__attribute__((tls_model("initial-exec"))) thread_local Thread t_thread = {};

bool find_folder() {
    if (g_folder[0] != '\0') {
        return true; // kept from the first look: a program may rewrite its environment
    }
    if (&environ == nullptr || environ == nullptr) {
        return false;
    }
    for (char** entry = environ; *entry != nullptr; ++entry) {
        std::size_t i = 0;
        while (kFolderVariable[i] != '\0' && (*entry)[i] == kFolderVariable[i]) {
            ++i;
        }
        if (kFolderVariable[i] == '\0') {
            const std::size_t bytes = length(*entry + i);
            if (bytes == 0 || bytes >= kMaxPath) {
                return false;
            }
            for (std::size_t j = bytes; j > 0; --j) {
                g_folder[j] = (*entry)[i + j];
            }
            __atomic_store_n(&g_folder[0], (*entry)[i], __ATOMIC_RELEASE);
            return true;
        }
    }
    return false;
}

wire::Control* map_control() {
    Text<kMaxPath + 64> path;
    path.add(g_folder).add("/control");
    const long fd = sys::call(sys::kOpenat, sys::kAtCwd, reinterpret_cast<long>(path.data()),
                              sys::kReadWrite | sys::kCloseOnExec | sys::kNoFollow);
    if (sys::failed(fd)) {
        return nullptr;
    }
    auto* page =
        static_cast<wire::Control*>(sys::map(wire::kPage, sys::kProtRead | sys::kProtWrite, sys::kMapShared, fd));
    sys::call(sys::kClose, fd);
    if (page != nullptr && (page->magic != wire::kControlMagic || page->version != wire::kVersion)) {
        sys::unmap(page, wire::kPage);
        return nullptr;
    }
    return page;
}

void count_loss(std::uint64_t records, wire::LossPlace where, long error) {
    __atomic_fetch_add(&g_control->lost, records, __ATOMIC_RELAXED);
    if (where != wire::LossPlace::none) {
        __atomic_store_n(&g_control->lost_errno, static_cast<std::uint64_t>(error < 0 ? -error : error),
                         __ATOMIC_RELAXED);
        __atomic_store_n(&g_control->lost_where, static_cast<std::uint64_t>(where), __ATOMIC_RELAXED);
    }
}

// A limit on file sizes answers with a signal, not with an error code, so it is asked first.
bool is_within_size_limit() {
    std::uint64_t limits[2] = {};
    const long result = sys::call(sys::kPrlimit, 0, sys::kLimitFileSize, 0, reinterpret_cast<long>(&limits[0]));
    return !sys::failed(result) && limits[0] >= wire::kSegmentBytes;
}

// Puts blocks under the whole file before it is mapped: a full disk must be an error code here, never a SIGBUS in
// somebody's build.
long allocate(long fd) {
    if (!is_within_size_limit()) {
        return -sys::kTooLarge;
    }
    const long result = sys::call(sys::kFallocate, fd, 0, 0, static_cast<long>(wire::kSegmentBytes));
    if (result != -sys::kNotSupported) {
        return result;
    }
    static const char zeros[wire::kPage] = {};
    for (std::uint64_t at = 0; at < wire::kSegmentBytes; at += wire::kPage) {
        const long written = sys::call(sys::kPwrite, fd, reinterpret_cast<long>(zeros), static_cast<long>(wire::kPage),
                                       static_cast<long>(at));
        if (written != static_cast<long>(wire::kPage)) {
            return written < 0 ? written : -sys::kNoSpace;
        }
    }
    return 0;
}

// Faults every page in now, so that no callback has to. Adding zero changes nothing that another thread may already
// have written.
void prefault(char* base) {
    if (!sys::failed(sys::call(sys::kMadvise, reinterpret_cast<long>(base), static_cast<long>(wire::kSegmentBytes),
                               sys::kPopulateWrite))) {
        return;
    }
    for (std::uint64_t at = 0; at < wire::kSegmentBytes; at += wire::kPage) {
        __atomic_fetch_or(reinterpret_cast<std::uint64_t*>(base + at), 0, __ATOMIC_RELAXED);
    }
}

wire::Slot* create_segment(Recorder* r, std::size_t number) {
    Text<kMaxPath + 64> path;
    path.add(g_folder).add("/p").add_number(r->pid).add("-").add_number(r->registered).add("-");
    path.add_number(number, 10, 4).add(".seg");
    const long fd = sys::call(sys::kOpenat, sys::kAtCwd, reinterpret_cast<long>(path.data()),
                              sys::kReadWrite | sys::kCreate | sys::kCloseOnExec | sys::kNoFollow, 0600);
    if (sys::failed(fd)) {
        count_loss(0, wire::LossPlace::open, fd);
        return nullptr;
    }
    const long allocated = allocate(fd);
    if (sys::failed(allocated)) {
        count_loss(0, wire::LossPlace::allocate, allocated);
        sys::call(sys::kClose, fd);
        return nullptr;
    }
    auto* base =
        static_cast<char*>(sys::map(wire::kSegmentBytes, sys::kProtRead | sys::kProtWrite, sys::kMapShared, fd));
    sys::call(sys::kClose, fd);
    if (base == nullptr) {
        count_loss(0, wire::LossPlace::map, 12);
        return nullptr;
    }
    prefault(base);
    auto* header = reinterpret_cast<wire::SegmentHeader*>(base);
    __atomic_store_n(&header->version, wire::kVersion, __ATOMIC_RELAXED);
    __atomic_store_n(&header->number, static_cast<std::uint32_t>(number), __ATOMIC_RELAXED);
    __atomic_store_n(&header->pid, r->pid, __ATOMIC_RELAXED);
    __atomic_store_n(&header->parent_pid, sys::parent_pid(), __ATOMIC_RELAXED);
    __atomic_store_n(&header->registered, r->registered, __ATOMIC_RELAXED);
    __atomic_store_n(&header->slots, wire::kSlotsPerSegment, __ATOMIC_RELAXED);
    __atomic_store_n(&header->magic, wire::kSegmentMagic, __ATOMIC_RELEASE);
    return reinterpret_cast<wire::Slot*>(base + wire::kPage);
}

// The slots of a segment, which is made if it is not there; null when it cannot be had.
wire::Slot* segment(Recorder* r, std::size_t number) {
    if (number >= kMaxSegments) {
        count_loss(0, wire::LossPlace::too_many_segments, 0);
        return nullptr;
    }
    wire::Slot* known = __atomic_load_n(&r->segments[number], __ATOMIC_ACQUIRE);
    if (known == nullptr) {
        wire::Slot* made = create_segment(r, number);
        wire::Slot* const put = made == nullptr ? kUnavailable : made;
        if (__atomic_compare_exchange_n(&r->segments[number], &known, put, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
            return made;
        }
        if (made != nullptr) {
            sys::unmap(reinterpret_cast<char*>(made) - wire::kPage, wire::kSegmentBytes);
        }
    }
    return known == kUnavailable ? nullptr : known;
}

wire::Slot* slot(Recorder* r, std::uint64_t index) {
    wire::Slot* slots = segment(r, index / wire::kSlotsPerSegment);
    return slots == nullptr ? nullptr : &slots[index % wire::kSlotsPerSegment];
}

// Reserves `span` slots. The thread whose reservation crosses the middle of a segment makes the next one ahead of need.
std::uint64_t reserve(Recorder* r, std::uint64_t span) {
    const std::uint64_t index = __atomic_fetch_add(&r->next, span, __ATOMIC_RELAXED);
    const std::uint64_t within = index % wire::kSlotsPerSegment;
    if (within <= wire::kSlotsPerSegment / 2 && within + span > wire::kSlotsPerSegment / 2) {
        segment(r, index / wire::kSlotsPerSegment + 1);
    }
    return index;
}

std::uint32_t thread_number(const Recorder* r) {
    if (t_thread.of != r) {
        t_thread = {r, sys::tid()};
    }
    return t_thread.tid;
}

void commit(wire::Slot* at, wire::Kind kind, std::uint8_t flags, std::uint64_t span, const std::uint64_t* words) {
    auto* to = reinterpret_cast<std::uint64_t*>(at);
    for (int i = 0; i < 7; ++i) {
        __atomic_store_n(to + 1 + i, words[i], __ATOMIC_RELAXED);
    }
    const auto low =
        static_cast<std::uint32_t>(static_cast<std::uint64_t>(kind) | (std::uint64_t{flags} << 8U) | (span << 16U));
    const std::uint64_t head = low | (static_cast<std::uint64_t>(wire::check(low, words)) << 32U);
    __atomic_store_n(to, head, __ATOMIC_RELEASE);
}

void pack(std::uint64_t* words, std::uint64_t at, std::uint32_t tid, const Fields& f) {
    words[0] = at;
    words[1] = f.build | (static_cast<std::uint64_t>(tid) << 32U);
    words[2] = f.name | (static_cast<std::uint64_t>(f.parent) << 32U);
    words[3] = static_cast<std::uint32_t>(f.a) | (static_cast<std::uint64_t>(f.b) << 32U);
    words[4] = f.c;
    words[5] = f.d;
    words[6] = f.e;
}

bool write_continuations(Recorder* r, std::uint64_t first, const char* text, std::size_t bytes) {
    for (std::size_t at = 0; at < bytes; at += wire::kTextPerSlot) {
        wire::Slot* to = slot(r, first++);
        if (to == nullptr) {
            return false;
        }
        std::uint64_t words[7] = {};
        const std::size_t left = bytes - at;
        __builtin_memcpy(words, text + at, left < wire::kTextPerSlot ? left : wire::kTextPerSlot);
        commit(to, wire::Kind::continuation, 0, 1, words);
    }
    return true;
}

void tell_name(Recorder* r, std::uint32_t number, const char* name, std::size_t bytes) {
    Fields fields;
    fields.name = number;
    record_text(r, wire::Kind::name, sys::now(), fields, name, bytes);
}

Recorder* open_recorder(std::uint32_t pid) {
    if (!find_folder()) {
        return nullptr;
    }
    if (g_control == nullptr) {
        g_control = map_control();
        if (g_control == nullptr) {
            return nullptr;
        }
    }
    auto* fresh = static_cast<Recorder*>(sys::anonymous(sizeof(Recorder)));
    if (fresh == nullptr) {
        count_loss(1, wire::LossPlace::map, 12);
        return nullptr;
    }
    fresh->pid = pid;
    fresh->registered = sys::now();
    fresh->seed = fresh->registered ^ reinterpret_cast<std::uintptr_t>(fresh);
    segment(fresh, 0);
    __atomic_fetch_add(&g_control->processes, 1, __ATOMIC_RELEASE);
    return fresh;
}

} // namespace

std::uint64_t sys::now() {
    timespec time = {};
    if (&clock_gettime != nullptr) {
        clock_gettime(CLOCK_MONOTONIC, &time);
    }
    return static_cast<std::uint64_t>(time.tv_sec) * 1000000000U + static_cast<std::uint64_t>(time.tv_nsec);
}

wire::Control* control() { return g_control; }

// Only ever called on slow paths (a builder is made, a build begins, a message comes), so a thread may wait here for
// the one that opens. A fork in between leaves the child a `g_opening` of its parent, which it sees by the pid.
Recorder* recorder() {
    const std::uint32_t pid = sys::pid();
    for (;;) {
        Recorder* known = __atomic_load_n(&g_recorder, __ATOMIC_ACQUIRE);
        if (known != nullptr && known->pid == pid) {
            return known;
        }
        if (__atomic_load_n(&g_disabled_for, __ATOMIC_RELAXED) == pid) {
            return nullptr;
        }
        std::uint32_t opening = __atomic_load_n(&g_opening, __ATOMIC_RELAXED);
        if (opening == pid) {
            sys::call(sys::kSchedYield);
            continue;
        }
        if (!__atomic_compare_exchange_n(&g_opening, &opening, pid, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED)) {
            continue;
        }
        // Another thread may have opened and left between the look and the claim.
        known = __atomic_load_n(&g_recorder, __ATOMIC_ACQUIRE);
        if (known == nullptr || known->pid != pid) {
            known = open_recorder(pid);
            if (known == nullptr) {
                __atomic_store_n(&g_disabled_for, pid, __ATOMIC_RELAXED);
            } else {
                __atomic_store_n(&g_recorder, known, __ATOMIC_RELEASE);
            }
        }
        __atomic_store_n(&g_opening, 0U, __ATOMIC_RELEASE);
        return known;
    }
}

void record(Recorder* r, wire::Kind kind, std::uint64_t at, const Fields& fields) {
    wire::Slot* to = slot(r, reserve(r, 1));
    if (to == nullptr) {
        count_loss(1, wire::LossPlace::none, 0);
        return;
    }
    // A slot is a cache line that nobody has touched: fetch one that will be needed soon.
    __builtin_prefetch(to + 8, 1);
    std::uint64_t words[7];
    pack(words, at, thread_number(r), fields);
    commit(to, kind, fields.flags, 1, words);
}

void record_text(Recorder* r, wire::Kind kind, std::uint64_t at, Fields fields, const char* text, std::size_t bytes) {
    if (bytes > wire::kMaxText) {
        bytes = wire::kMaxText;
        fields.flags |= 1U;
    }
    fields.c = bytes;
    const std::uint64_t span = 1 + (bytes + wire::kTextPerSlot - 1) / wire::kTextPerSlot;
    const std::uint64_t first = reserve(r, span);
    wire::Slot* to = slot(r, first);
    if (to == nullptr || !write_continuations(r, first + 1, text, bytes)) {
        count_loss(1, wire::LossPlace::none, 0);
        return;
    }
    std::uint64_t words[7];
    pack(words, at, thread_number(r), fields);
    commit(to, kind, fields.flags, span, words);
}

std::uint32_t intern(Recorder* r, const char* name) {
    if (name == nullptr) {
        return 0;
    }
    const std::size_t bytes = length(name);
    const std::uint64_t wanted = hash(name, bytes < wire::kMaxText ? bytes : wire::kMaxText, r->seed ^ bytes);
    for (std::size_t probe = 0; probe < 64; ++probe) {
        const std::size_t index = (wanted + probe) % kNames;
        Name* entry = &r->names[index];
        std::uint64_t found = __atomic_load_n(&entry->hash, __ATOMIC_ACQUIRE);
        if (found == 0 &&
            __atomic_compare_exchange_n(&entry->hash, &found, wanted, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
            found = wanted;
        }
        if (found != wanted) {
            continue;
        }
        const auto number = static_cast<std::uint32_t>(index + 1);
        // Told by every thread that finds it untold: twice is harmless, a record before its name is not.
        if (__atomic_load_n(&entry->told, __ATOMIC_ACQUIRE) == 0) {
            tell_name(r, number, name, bytes);
            __atomic_store_n(&entry->told, 1U, __ATOMIC_RELEASE);
        }
        return number;
    }
    const std::uint32_t number = 0x80000000U | __atomic_fetch_add(&r->unnamed, 1, __ATOMIC_RELAXED);
    tell_name(r, number, name, bytes);
    return number;
}

} // namespace stuckproof
