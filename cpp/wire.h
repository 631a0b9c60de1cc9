// The wire: mapped files by which the attach library tells the runner what a builder does, and is told to stop it.
//
// One folder holds a control page (file "control", made by the runner) and, for every process that meets a builder, a
// chain of segments (files "p<pid>-<registered>-<number>.seg", made by the attach library). src/wire reads the same
// format.
//
//   control   4096 bytes. The runner writes the cancel word; the attach libraries count what they could not store.
//   segment   a 4096-byte header, then slots of 64 bytes. Slots are reserved by one atomic addition a process, written,
//             and committed last by one release store of their first word. Nothing is ever recycled.
//
// A slot is torn when its first word is zero (reserved, never committed) or its check does not fit its words. A text
// (a name, a message, facts) follows its slot in continuation slots, each with a check of its own; the leading slot is
// committed after them, so that a committed leading slot has its whole text.
#pragma once

#include <cstdint>

namespace stuckproof::wire {

constexpr std::uint64_t kControlMagic = 0x314C525443535053ULL; // "SPSCTRL1"
constexpr std::uint64_t kSegmentMagic = 0x3147455353505053ULL; // "SPPSSEG1"
constexpr std::uint32_t kVersion = 1;
constexpr std::uint64_t kPage = 4096;
constexpr std::uint64_t kSlotBytes = 64;
constexpr std::uint64_t kSegmentBytes = 1U << 20U;
constexpr std::uint64_t kSlotsPerSegment = (kSegmentBytes - kPage) / kSlotBytes;
constexpr std::uint64_t kTextPerSlot = kSlotBytes - 8;

// A text longer than this is cut; the record says so.
constexpr std::uint64_t kMaxText = 32 * 1024;

struct Control {
    std::uint64_t magic;
    std::uint32_t version;
    std::uint32_t source;       // who asked, for the runner's own side; written before `cancel`
    std::uint64_t cancel;       // 0, or the number of the accepted request; the runner writes it once
    std::uint64_t requested_at; // CLOCK_MONOTONIC of that request, nanoseconds; written before `cancel`
    std::uint64_t sender;       // pid (low half) and uid (high half) where known, else all ones
    std::uint64_t anchor_mono;
    std::uint64_t anchor_wall;
    std::uint64_t via; // the first eight bytes of the way the request came, for a reader that has only this page
    // From here on the attach libraries write, with atomic additions.
    std::uint64_t processes; // processes that opened a first segment
    std::uint64_t lost;      // records that could not be stored
    std::uint64_t lost_errno;
    std::uint64_t lost_where; // a LossPlace
};
static_assert(sizeof(Control) <= kPage);

// 5 is the runner's own: the log could not be written.
enum class LossPlace : std::uint64_t { none = 0, open = 1, allocate = 2, map = 3, too_many_segments = 4 };

struct SegmentHeader {
    std::uint64_t magic;
    std::uint32_t version;
    std::uint32_t number;
    std::uint32_t pid;
    std::uint32_t parent_pid;
    std::uint64_t registered; // CLOCK_MONOTONIC when the process opened its first segment; with the pid, its identity
    std::uint64_t slots;
};

enum class Kind : std::uint8_t {
    name = 1,
    library = 2,
    refused = 3,
    build_start = 4,
    phase_start = 5,
    step = 6,
    phase_finish = 7,
    application_false = 8,
    build_return = 9,
    message = 10,
    message_counts = 11,
    build_facts = 12,
    continuation = 255,
};

// The words of a slot. Fields by kind:
//   name            name = its number; text
//   library         text = key NUL value NUL ...
//   refused         text = the reason
//   build_start     a = Method, flags bit 0 = the application's monitor is chained
//   phase_start     name, parent (0 = none), a = announced steps
//   step            name, a = step, b = the request answered with false, or 0
//   phase_finish    name
//   application_false  name, a = step
//   message_counts  c, d, e = counts by severity during the build, two a word: (internal, error), (warning, info),
//                   (verbose, 0); comes just before its build_return
//   build_facts     text = key NUL value NUL ...; comes just after its build_start
//   build_return    a = 1 when an engine was returned; c = its bytes, flags bit 0 = the bytes are known
//   message         a = severity; text; flags bit 0 = cut
struct Slot {
    std::uint64_t head; // kind (8 bits), flags (8), span in slots (16), check (32): one word, stored last
    std::uint64_t mono;
    std::uint32_t build;
    std::uint32_t tid;
    std::uint32_t name;
    std::uint32_t parent;
    std::int32_t a;
    std::uint32_t b;
    std::uint64_t c; // for a text: its length in bytes
    std::uint64_t d;
    std::uint64_t e;
};
static_assert(sizeof(Slot) == kSlotBytes);

// The check of a slot: a fold of its other seven words and of the head's lower half. Not a signature; it tells a torn
// or flipped slot from a whole one.
inline std::uint32_t check(std::uint32_t head, const std::uint64_t* words) {
    constexpr std::uint64_t kOdd = 0x9E3779B97F4A7C15ULL;
    std::uint64_t even = head;
    std::uint64_t odd = kOdd;
    for (int i = 0; i < 6; i += 2) {
        even = (even ^ words[i]) * kOdd;
        odd = (odd ^ words[i + 1]) * kOdd;
        even ^= even >> 29U;
        odd ^= odd >> 29U;
    }
    even = (even ^ words[6]) * kOdd;
    const std::uint64_t folded = (even ^ (odd >> 17U) ^ (odd << 47U)) * kOdd;
    return static_cast<std::uint32_t>(folded >> 32U);
}

} // namespace stuckproof::wire
