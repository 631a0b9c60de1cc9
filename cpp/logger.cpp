#include "logger.h"

#include "monitor.h"
#include "recorder.h"
#include "system.h"
#include "text.h"
#include "vtable.h"

namespace stuckproof {

namespace {

constexpr std::int32_t kLastKept = 2; // kWARNING; info and verbose come by the ten thousand and are counted only
constexpr std::int32_t kSeverities = 5;

using Log = void (*)(void* logger, std::int32_t severity, const char* text);

// The build that a message belongs to, or null.
Monitor* build_now(const Recorder* r) {
    if (Monitor* of_thread = thread_monitor(r)) {
        return of_thread;
    }
    // One of the library's own threads: certain only while a single build runs.
    return __atomic_load_n(&r->active, __ATOMIC_RELAXED) == 1 ? __atomic_load_n(&r->latest, __ATOMIC_ACQUIRE) : nullptr;
}

void log(void* logger, std::int32_t severity, const char* text) {
    const VtableCopy* copy = copy_behind(logger);
    const auto* library = static_cast<const Library*>(copy->context);
    Recorder* r = recorder();
    if (r != nullptr && severity >= 0 && severity < kSeverities) {
        Monitor* monitor = build_now(r);
        if (monitor != nullptr) {
            __atomic_fetch_add(&monitor->messages[severity], 1, __ATOMIC_RELAXED);
        }
        if (severity <= kLastKept && text != nullptr) {
            Fields fields;
            fields.build = monitor == nullptr ? 0 : monitor->build;
            fields.a = severity;
            record_text(r, wire::Kind::message, sys::now(), fields, text, length(text));
        }
    }
    const void* forward = copy->original[library->layout->log];
    reinterpret_cast<Log>(const_cast<void*>(forward))(logger, severity, text);
}

// A logger's methods may lie in any object: the application's, or a binding's.
bool is_any_code(const void* const* word, const void* /*context*/) {
    elf::Object object;
    if (!elf::containing(word, &object)) {
        return false;
    }
    const void* function = elf::word_at(word);
    return function != nullptr && elf::containing(function, &object) && elf::is_code(object, function);
}

// Whether this process may write to the address, by the kernel's own list of mappings. A logger can be a constant.
bool is_writable(const void* address) {
    const long fd = sys::call(sys::kOpenat, sys::kAtCwd, reinterpret_cast<long>("/proc/self/maps"), sys::kCloseOnExec);
    if (sys::failed(fd)) {
        return false;
    }
    const auto wanted = reinterpret_cast<std::uintptr_t>(address);
    char buffer[4096];
    std::uintptr_t bounds[2] = {};
    unsigned field = 0; // 0 start, 1 end, 2.. the permissions, then the rest of the line
    bool inside = false;
    bool writable = false;
    for (bool done = false; !done;) {
        const long got = sys::call(sys::kRead, fd, reinterpret_cast<long>(buffer), sizeof(buffer));
        if (got <= 0) {
            break;
        }
        for (long i = 0; i < got && !done; ++i) {
            const char c = buffer[i];
            if (c == '\n') {
                field = 0;
                bounds[0] = bounds[1] = 0;
            } else if (field < 2 && (c == '-' || c == ' ')) {
                ++field;
                inside = field == 2 && wanted >= bounds[0] && wanted < bounds[1];
            } else if (field < 2) {
                bounds[field] = bounds[field] * 16 + static_cast<unsigned>(c <= '9' ? c - '0' : c - 'a' + 10);
            } else if (field == 2 || field == 3) { // r, then w
                writable = c == 'w';
                done = field == 3 && inside;
                ++field;
            }
        }
    }
    sys::call(sys::kClose, fd);
    return inside && writable;
}

std::uint32_t g_turn = 0;

// Many builders can share one logger. One thread at a time looks at it and writes, so that its word is written once
// only, before a thread of any of these builders can read it. After a fork the turn may be that of a thread which the
// child does not have, so nobody waits for ever.
class Turn {
  public:
    Turn() {
        for (int tries = 0; tries < kTries && !mine_; ++tries) {
            mine_ = __atomic_exchange_n(&g_turn, 1U, __ATOMIC_ACQUIRE) == 0U;
            if (!mine_) {
                sys::call(sys::kSchedYield);
            }
        }
    }
    ~Turn() {
        if (mine_) {
            __atomic_store_n(&g_turn, 0U, __ATOMIC_RELEASE);
        }
    }
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;

  private:
    static constexpr int kTries = 10000;
    bool mine_ = false;
};

} // namespace

const char* observe_logger(Library* library, void* logger) {
    const std::uint8_t slot = library->layout->log;
    if (slot == kNone) {
        return "the logger's layout in this version is not known for certain";
    }
    if (logger == nullptr) {
        return "the application passed no logger";
    }
    auto* table = __atomic_load_n(static_cast<const void* const**>(logger), __ATOMIC_ACQUIRE);
    if (is_copy(table)) {
        return nullptr;
    }
    const Replacement replacement = {slot, reinterpret_cast<const void*>(log)};
    const VtableCopy* copy = copy_of(table, slot + 1U, is_any_code, nullptr, &replacement, 1, library);
    if (copy == nullptr) {
        return "the logger's virtual table does not look like one";
    }
    if (!is_writable(logger)) {
        return "the logger object cannot be written to";
    }
    const Turn turn;
    table = __atomic_load_n(static_cast<const void* const**>(logger), __ATOMIC_ACQUIRE);
    if (!is_copy(table)) {
        __atomic_store_n(static_cast<const void* const**>(logger), &copy->table[0], __ATOMIC_RELEASE);
    }
    return nullptr;
}

} // namespace stuckproof
