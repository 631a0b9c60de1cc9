#include "monitor.h"

#include "system.h"

namespace stuckproof {

namespace {

constexpr std::size_t kMonitors = 8192;

Monitor* g_pool = nullptr;
std::uint64_t g_taken = 0;

__attribute__((tls_model("initial-exec"))) thread_local Monitor* t_monitor = nullptr;

std::uint32_t build_of(const Monitor* monitor) {
    const Monitor* of_thread = thread_monitor(monitor->recorder);
    return of_thread != nullptr ? of_thread->build : monitor->build;
}

template <class Function> Function application_slot(const Monitor* monitor, unsigned which) {
    const auto* table = *static_cast<const void* const* const*>(monitor->application);
    return reinterpret_cast<Function>(const_cast<void*>(table[monitor->layout->monitor_first + which]));
}

void phase_start(Monitor* self, const char* name, const char* parent, std::int32_t steps) {
    Recorder* r = self->recorder;
    Fields fields;
    fields.build = build_of(self);
    const std::uint64_t at = sys::now();
    fields.name = intern(r, name);
    fields.parent = intern(r, parent);
    fields.a = steps;
    record(r, wire::Kind::phase_start, at, fields);
    if (self->application != nullptr) {
        application_slot<void (*)(void*, const char*, const char*, std::int32_t)>(self, 0)(self->application, name,
                                                                                           parent, steps);
    }
}

// The word is read before the clock, so that an acknowledgement is never earlier than its request.
bool step_complete(Monitor* self, const char* name, std::int32_t step) {
    Recorder* r = self->recorder;
    Fields fields;
    fields.b = cancel_word(control());
    const std::uint64_t at = sys::now();
    fields.build = build_of(self);
    fields.name = intern(r, name);
    fields.a = step;
    record(r, wire::Kind::step, at, fields);
    bool go_on = fields.b == 0;
    if (self->application != nullptr &&
        !application_slot<bool (*)(void*, const char*, std::int32_t)>(self, 1)(self->application, name, step)) {
        record(r, wire::Kind::application_false, sys::now(), fields);
        go_on = false;
    }
    return go_on;
}

void phase_finish(Monitor* self, const char* name) {
    Fields fields;
    fields.build = build_of(self);
    const std::uint64_t at = sys::now();
    fields.name = intern(self->recorder, name);
    record(self->recorder, wire::Kind::phase_finish, at, fields);
    if (self->application != nullptr) {
        application_slot<void (*)(void*, const char*)>(self, 2)(self->application, name);
    }
}

// A library that deletes or destroys our monitor frees nothing.
void destroy(Monitor* /*self*/) {}

std::int32_t api_language(const Monitor* /*self*/) { return 0; } // APILanguage::kCPP

struct InterfaceInfo {
    const char* kind;
    std::int32_t major;
    std::int32_t minor;
};
InterfaceInfo interface_info(const Monitor* /*self*/) { return {"IProgressMonitor", 1, 0}; }

template <class Function> const void* address(Function function) { return reinterpret_cast<const void*>(function); }

Monitor* pool() {
    Monitor* known = __atomic_load_n(&g_pool, __ATOMIC_ACQUIRE);
    if (known != nullptr) {
        return known;
    }
    auto* fresh = static_cast<Monitor*>(sys::anonymous(kMonitors * sizeof(Monitor)));
    if (fresh == nullptr) {
        return nullptr;
    }
    if (__atomic_compare_exchange_n(&g_pool, &known, fresh, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
        return fresh;
    }
    sys::unmap(fresh, kMonitors * sizeof(Monitor));
    return known;
}

} // namespace

bool make_monitor_table(Library* library, const void* type) {
    MonitorTable* known = __atomic_load_n(&library->monitor_table, __ATOMIC_ACQUIRE);
    if (known != nullptr) {
        return true;
    }
    auto* fresh = static_cast<MonitorTable*>(sys::anonymous(sizeof(MonitorTable)));
    if (fresh == nullptr) {
        return false;
    }
    fresh->type = type;
    unsigned at = 0;
    if (library->layout->monitor_versioned) {
        fresh->slots[at++] = address(api_language);
        fresh->slots[at++] = address(interface_info);
    }
    fresh->slots[at++] = address(destroy);
    fresh->slots[at++] = address(destroy);
    fresh->slots[at++] = address(phase_start);
    fresh->slots[at++] = address(step_complete);
    fresh->slots[at] = address(phase_finish);
    if (!__atomic_compare_exchange_n(&library->monitor_table, &known, fresh, false, __ATOMIC_ACQ_REL,
                                     __ATOMIC_ACQUIRE)) {
        sys::unmap(fresh, sizeof(MonitorTable));
    }
    return true;
}

Monitor* new_monitor(Library* library, Recorder* recorder, std::uint32_t build) {
    Monitor* monitors = pool();
    if (monitors == nullptr) {
        return nullptr;
    }
    for (std::size_t tries = 0; tries < kMonitors; ++tries) {
        Monitor* monitor = &monitors[__atomic_fetch_add(&g_taken, 1, __ATOMIC_RELAXED) % kMonitors];
        std::uint32_t idle = 0;
        if (__atomic_compare_exchange_n(&monitor->running, &idle, 1, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED)) {
            monitor->layout = library->layout;
            monitor->recorder = recorder;
            monitor->application = nullptr;
            monitor->displaced = nullptr;
            monitor->displaced_build = 0;
            monitor->build = build;
            for (std::uint32_t& count : monitor->messages) {
                __atomic_store_n(&count, 0U, __ATOMIC_RELAXED);
            }
            monitor->table = __atomic_load_n(&library->monitor_table, __ATOMIC_ACQUIRE)->slots;
            return monitor;
        }
    }
    return nullptr;
}

Monitor* as_ours(void* monitor) {
    const auto first = reinterpret_cast<std::uintptr_t>(__atomic_load_n(&g_pool, __ATOMIC_ACQUIRE));
    const auto candidate = reinterpret_cast<std::uintptr_t>(monitor);
    return first != 0 && candidate >= first && candidate - first < kMonitors * sizeof(Monitor)
               ? static_cast<Monitor*>(monitor)
               : nullptr;
}

// A thread that forked inside a build left the child a monitor of the parent's recorder.
Monitor* thread_monitor(const Recorder* recorder) {
    return t_monitor != nullptr && t_monitor->recorder == recorder ? t_monitor : nullptr;
}

void set_thread_monitor(Monitor* monitor) { t_monitor = monitor; }

} // namespace stuckproof
