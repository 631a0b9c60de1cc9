#include "builder.h"

#include "facts.h"
#include "library.h"
#include "logger.h"
#include "monitor.h"
#include "object.h"
#include "recorder.h"
#include "system.h"
#include "text.h"
#include "vtable.h"

namespace stuckproof {

namespace {

enum class Method : std::int32_t { serialized = 1, engine = 2, to_stream = 3, kernel_text = 4 };

void* get_monitor(const Layout* layout, void* config) {
    void* impl = implementation(config);
    return method<void* (*)(void*)>(impl, layout->get_monitor)(impl);
}

void set_monitor(const Layout* layout, void* config, void* monitor) {
    void* impl = implementation(config);
    method<void (*)(void*, void*)>(impl, layout->set_monitor)(impl, monitor);
}

// Whether the config is one of this library's, with its monitor methods where the table says.
bool is_plausible_config(const Library* library, void* config) {
    if (config == nullptr || implementation(config) == nullptr) {
        return false;
    }
    const void* const* table = table_of(implementation(config));
    if (is_copy(table)) {
        table = copy_behind(implementation(config))->original;
    }
    return is_library_code(&table[library->layout->set_monitor], library) &&
           is_library_code(&table[library->layout->get_monitor], library);
}

// One call of a build method, from before it is forwarded until after it returned.
class Build {
  public:
    Build(void* builder, void* network, void* config, Method how) : copy_(copy_behind(builder)), config_(config) {
        library_ = static_cast<Library*>(const_cast<void*>(copy_->context));
        recorder_ = recorder();
        // A build method that calls another of its own is still one build.
        if (recorder_ == nullptr || thread_monitor(recorder_) != nullptr) {
            return;
        }
        if (!is_plausible_config(library_, config)) {
            constexpr const char* kReason = "a builder configuration does not look as this version's tables say";
            record_text(recorder_, wire::Kind::refused, sys::now(), {}, kReason, length(kReason));
            return;
        }
        number_ = __atomic_add_fetch(&recorder_->builds, 1, __ATOMIC_RELAXED);
        monitor_ = new_monitor(library_, recorder_, number_);
        if (monitor_ == nullptr) {
            return;
        }
        __atomic_store_n(&recorder_->latest, monitor_, __ATOMIC_RELEASE);
        __atomic_add_fetch(&recorder_->active, 1, __ATOMIC_RELAXED);
        install(how, network);
    }

    Build(const Build&) = delete;
    Build& operator=(const Build&) = delete;

    template <class Function> Function original(std::uint8_t slot) const {
        return reinterpret_cast<Function>(const_cast<void*>(copy_->original[slot]));
    }

    const Layout* layout() const { return library_->layout; }

    void returned(bool engine, void* host_memory) {
        if (monitor_ == nullptr) {
            return;
        }
        const std::uint64_t at = sys::now();
        set_thread_monitor(nullptr);
        record_counts(at);
        Fields fields;
        fields.build = number_;
        fields.a = engine ? 1 : 0;
        if (host_memory != nullptr) {
            fields.flags = 1;
            fields.c = bytes_of(host_memory);
        }
        record(recorder_, wire::Kind::build_return, at, fields);
        restore();
        __atomic_sub_fetch(&recorder_->active, 1, __ATOMIC_RELAXED);
        __atomic_store_n(&monitor_->running, 0U, __ATOMIC_RELEASE);
    }

  private:
    void install(Method how, void* network) {
        void* present = get_monitor(library_->layout, config_);
        if (Monitor* other = as_ours(present)) {
            // A second build on a config that a first one is using. We never chain to ourselves.
            monitor_->application = other->application;
            monitor_->displaced = other;
            monitor_->displaced_build = other->build;
        } else {
            monitor_->application = present;
        }
        Fields fields;
        fields.build = number_;
        fields.a = static_cast<std::int32_t>(how);
        fields.flags = monitor_->application != nullptr ? 1 : 0;
        record(recorder_, wire::Kind::build_start, sys::now(), fields);
        record_facts(recorder_, library_, number_, network, config_);
        set_thread_monitor(monitor_);
        set_monitor(library_->layout, config_, monitor_);
    }

    // Gives the config back what it held, but only if it still holds ours: the application may have set another.
    void restore() {
        if (get_monitor(library_->layout, config_) != monitor_) {
            return;
        }
        const Monitor* other = monitor_->displaced;
        const bool other_runs = other != nullptr && other->build == monitor_->displaced_build &&
                                __atomic_load_n(&other->running, __ATOMIC_ACQUIRE) != 0;
        set_monitor(library_->layout, config_, other_runs ? monitor_->displaced : monitor_->application);
    }

    void record_counts(std::uint64_t at) {
        std::uint64_t counts[5];
        for (int i = 0; i < 5; ++i) {
            counts[i] = __atomic_load_n(&monitor_->messages[i], __ATOMIC_RELAXED);
        }
        Fields fields;
        fields.build = number_;
        fields.c = counts[0] | (counts[1] << 32U);
        fields.d = counts[2] | (counts[3] << 32U);
        fields.e = counts[4];
        record(recorder_, wire::Kind::message_counts, at, fields);
    }

    std::uint64_t bytes_of(void* host_memory) const {
        void* impl = implementation(host_memory);
        return method<std::uint64_t (*)(void*)>(impl, kHostMemorySize)(impl);
    }

    const VtableCopy* copy_;
    Library* library_ = nullptr;
    Recorder* recorder_ = nullptr;
    void* config_;
    Monitor* monitor_ = nullptr;
    std::uint32_t number_ = 0;
};

void* build_serialized(void* self, void* network, void* config) {
    Build build(self, network, config, Method::serialized);
    void* memory =
        build.original<void* (*)(void*, void*, void*)>(build.layout()->build_serialized)(self, network, config);
    build.returned(memory != nullptr, memory);
    return memory;
}

void* build_engine(void* self, void* network, void* config) {
    Build build(self, network, config, Method::engine);
    void* engine = build.original<void* (*)(void*, void*, void*)>(build.layout()->build_engine)(self, network, config);
    build.returned(engine != nullptr, nullptr);
    return engine;
}

bool build_to_stream(void* self, void* network, void* config, void* writer) {
    Build build(self, network, config, Method::to_stream);
    const bool done = build.original<bool (*)(void*, void*, void*, void*)>(build.layout()->build_to_stream)(
        self, network, config, writer);
    build.returned(done, nullptr);
    return done;
}

void* build_kernel_text(void* self, void* network, void* config, void** text) {
    Build build(self, network, config, Method::kernel_text);
    void* memory = build.original<void* (*)(void*, void*, void*, void**)>(build.layout()->build_kernel_text)(
        self, network, config, text);
    build.returned(memory != nullptr, memory);
    return memory;
}

void* create_config(void* self) {
    const VtableCopy* copy = copy_behind(self);
    auto* library = static_cast<Library*>(copy->context);
    void* config =
        reinterpret_cast<void* (*)(void*)>(const_cast<void*>(copy->original[library->facts->create_config]))(self);
    observe_config(library, config);
    return config;
}

template <class Function> const void* address(Function function) { return reinterpret_cast<const void*>(function); }

bool accepts_any_python(const elf::Object& /*object*/, const void* /*wanted*/) { return true; }

const char* flavour_name(Flavour flavour) { return flavour == Flavour::rtx ? "tensorrt-rtx" : "tensorrt"; }

template <std::size_t kCapacity> void add_version(Text<kCapacity>& text, const Library* library) {
    const int parts[] = {library->major, library->minor, library->patch, library->build};
    for (int i = 0; i < 4 && parts[i] >= 0; ++i) {
        text.add(i == 0 ? "" : ".").add_number(static_cast<std::uint64_t>(parts[i]));
    }
}

// Once a process for each library.
void tell_library(Recorder* r, Library* library, const char* messages_unobserved) {
    if (__atomic_exchange_n(&library->told_by, r->pid, __ATOMIC_ACQ_REL) == r->pid) {
        return;
    }
    elf::Object python;
    const bool has_python = elf::first_defining("Py_IsInitialized", accepts_any_python, nullptr, &python);
    Text<6000> facts;
    facts.add("flavour").end().add(flavour_name(library->flavour)).end();
    facts.add("version").end();
    add_version(facts, library);
    facts.end();
    facts.add("python").end().add(has_python ? "1" : "0").end();
    facts.add("proven").end().add(library->layout->proven ? "library" : "headers").end();
    const bool simulated = elf::find(library->object, "stuckproof_simulated") != nullptr;
    facts.add("simulated").end().add(simulated ? "1" : "0").end();
    facts.add("messages").end().add(messages_unobserved == nullptr ? "" : messages_unobserved).end();
    facts.add("path").end().add(library->object.name).end();
    record_text(r, wire::Kind::library, sys::now(), {}, facts.data(), facts.size());
}

void refuse(Recorder* r, const Library* library, const char* why) {
    Text<6000> reason;
    if (library != nullptr) {
        reason.add(flavour_name(library->flavour)).add(" ");
        add_version(reason, library);
        reason.add(" (").add(library->object.name).add("): ");
    }
    reason.add(why);
    record_text(r, wire::Kind::refused, sys::now(), {}, reason.data(), reason.size());
}

// Points the builder's implementation at the copy with our build methods. Returns why not, or null.
const char* observe_builder(Library* library, void* builder) {
    void* impl = implementation(builder);
    if (impl == nullptr) {
        return "the builder has no implementation object where this version's tables say";
    }
    const void* const* table = table_of(impl);
    if (is_copy(table)) {
        return nullptr;
    }
    if (!elf::is_inside(library->object, table)) {
        return "the builder's virtual table lies outside the library";
    }
    const Layout* layout = library->layout;
    const Replacement replacements[] = {
        {layout->build_serialized, address(build_serialized)},
        {layout->build_engine, address(build_engine)},
        {layout->build_to_stream, address(build_to_stream)},
        {layout->build_kernel_text, address(build_kernel_text)},
        {library->facts == nullptr ? kNone : library->facts->create_config, address(create_config)},
    };
    const VtableCopy* copy = copy_of(table, layout->builder_slots, is_library_code, library, replacements, 5, library);
    if (copy == nullptr) {
        return "the builder's virtual table is shorter than this version's tables say";
    }
    if (!make_monitor_table(library, copy->type)) {
        return "there is no memory left for a monitor";
    }
    __atomic_store_n(static_cast<const void* const**>(impl), &copy->table[0], __ATOMIC_RELEASE);
    return nullptr;
}

} // namespace

void* create_observed(CreateBuilder real, void* logger, std::int32_t version) {
    Recorder* r = recorder();
    if (r == nullptr) {
        return real(logger, version);
    }
    Library* library = library_of(reinterpret_cast<const void*>(real));
    if (library == nullptr || library->layout == nullptr) {
        refuse(r, library,
               library == nullptr ? "a builder came from a library that is neither TensorRT nor TensorRT-RTX"
                                  : "this version's tables are not known to stuckproof");
        return real(logger, version);
    }
    const char* messages_unobserved = observe_logger(library, logger);
    void* builder = real(logger, version);
    if (builder == nullptr) {
        return builder;
    }
    if (const char* why = observe_builder(library, builder)) {
        refuse(r, library, why);
        return builder;
    }
    tell_library(r, library, messages_unobserved);
    return builder;
}

// TensorRT-RTX passes major * 10000 + ... with a major of 1; TensorRT passes 9300 for 9.3.0 and 100000 and more
// from 10.0.
CreateBuilder find_create(std::int32_t version) {
    const Flavour flavour = version >= 10000 && version < 100000 ? Flavour::rtx : Flavour::tensorrt;
    elf::Object object;
    if (!elf::first_defining("createInferBuilder_INTERNAL", is_flavour, &flavour, &object)) {
        return nullptr;
    }
    return reinterpret_cast<CreateBuilder>(elf::find(object, "createInferBuilder_INTERNAL"));
}

} // namespace stuckproof
