#include "fake_builder.h"

#include "../layouts.h"

#include <atomic>
#include <initializer_list>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace {

using Word = const void*;

const stuckproof::Layout& layout() { return *stuckproof::find_layout(stuckproof::Flavour::rtx, 1, 7); }

std::atomic<int> g_threads{2};
std::atomic<int> g_steps{100};

struct Object {
    Word* table; // a public object: nobody calls through it here
    void* implementation;
};

struct Config {
    Word* table;
    std::mutex mutex;
    void* monitor;
};

struct Builder {
    Word* table;
    void* logger;
};

void unused() {}

// A table with its two leading words, all code.
struct Table {
    Word words[2 + 64];
    explicit Table(std::initializer_list<std::pair<unsigned, Word>> methods) : words{} {
        for (Word& word : words) {
            word = reinterpret_cast<Word>(unused);
        }
        words[0] = nullptr;
        words[1] = nullptr;
        words[2 + 63] = nullptr;
        for (const auto& [slot, function] : methods) {
            words[2 + slot] = function;
        }
    }
    Word* slots() { return &words[2]; }
};

template <class Function> Function call(void* object, unsigned slot) {
    return reinterpret_cast<Function>(const_cast<void*>((*static_cast<Word**>(object))[slot]));
}

void set_monitor(Config* config, void* monitor) {
    const std::lock_guard<std::mutex> lock(config->mutex);
    config->monitor = monitor;
}

void* get_monitor(Config* config) {
    const std::lock_guard<std::mutex> lock(config->mutex);
    return config->monitor;
}

bool phase(void* monitor, const char* name, const char* parent, int steps) {
    if (monitor == nullptr) {
        return true;
    }
    const unsigned first = layout().monitor_first;
    call<void (*)(void*, const char*, const char*, int)>(monitor, first)(monitor, name, parent, steps);
    bool go_on = true;
    for (int step = 0; step < steps && go_on; ++step) {
        go_on = call<bool (*)(void*, const char*, int)>(monitor, first + 1)(monitor, name, step);
    }
    call<void (*)(void*, const char*)>(monitor, first + 2)(monitor, name);
    return go_on;
}

void log(void* logger, int severity, const std::string& text) {
    call<void (*)(void*, int, const char*)>(logger, layout().log)(logger, severity, text.c_str());
}

void* build(Builder* builder, void* /*network*/, void* public_config) {
    auto* config = static_cast<Config*>(static_cast<Object*>(public_config)->implementation);
    void* monitor = get_monitor(config);
    std::atomic<bool> go_on{true};
    std::vector<std::thread> threads;
    for (int i = 0; i < g_threads; ++i) {
        threads.emplace_back([&, i] {
            const std::string name = "Timing tactics of worker " + std::to_string(i);
            log(builder->logger, 2, "worker " + std::string(static_cast<std::size_t>(i) * 40U, 'x'));
            log(builder->logger, 4, "verbose");
            if (!phase(monitor, name.c_str(), "Building engine", g_steps)) {
                go_on = false;
            }
        });
    }
    for (std::thread& thread : threads) {
        thread.join();
    }
    if (!phase(monitor, "Building engine", nullptr, 1)) {
        go_on = false;
    }
    return nullptr; // sizes are not the point here
}

Table& builder_table() {
    static Table table({{layout().build_serialized, reinterpret_cast<Word>(build)}});
    return table;
}

Table& config_table() {
    static Table table({{layout().set_monitor, reinterpret_cast<Word>(set_monitor)},
                        {layout().get_monitor, reinterpret_cast<Word>(get_monitor)}});
    return table;
}

} // namespace

extern "C" {

void fake_configure(int threads, int steps) {
    g_threads = threads;
    g_steps = steps;
}

void* createInferBuilder_INTERNAL(void* logger, std::int32_t /*version*/) {
    static std::mutex mutex;
    const std::lock_guard<std::mutex> lock(mutex);
    return new Object{nullptr, new Builder{builder_table().slots(), logger}};
}

void* fake_config() {
    static std::mutex mutex;
    const std::lock_guard<std::mutex> lock(mutex);
    return new Object{nullptr, new Config{config_table().slots(), {}, nullptr}};
}

void fake_destroy(void* object) { // leaks its implementation's destructor on purpose: plain memory
    auto* public_object = static_cast<Object*>(object);
    ::operator delete(public_object->implementation);
    delete public_object;
}

void* fake_build(void* builder, void* config) {
    void* implementation = static_cast<Object*>(builder)->implementation;
    return call<void* (*)(void*, void*, void*)>(implementation, layout().build_serialized)(implementation, nullptr,
                                                                                           config);
}

std::int32_t getInferLibMajorVersion() { return 1; }
std::int32_t getInferLibMinorVersion() { return 7; }
std::int32_t getInferLibPatchVersion() { return 0; }
std::int32_t getInferLibBuildVersion() { return 0; }
}
