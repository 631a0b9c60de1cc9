// What the objects of every version have in common: the thin public object, the application's interfaces, dimensions.
//
// Written from the published interfaces, apart from the slot tables of the attach library, which they are to put to the
// test: nothing of cpp/layouts.h or cpp/fact_layouts.h is used here.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>

namespace simulated {

// A public object: a virtual table, then the implementation that the inline methods of the headers forward to.
struct Object {
    virtual ~Object() = default;
    void* implementation = nullptr;
};

template <class V> V* behind(const Object& object) { return static_cast<V*>(object.implementation); }

// Extents are 32 bits wide up to 9.x, 64 from 10.0 on.
template <class Extent> struct Dimensions {
    std::int32_t count = 0;
    Extent extents[8] = {};
};

struct PlainMonitor {
    virtual ~PlainMonitor() = default;
    virtual void phaseStart(const char* phase, const char* parent, std::int32_t steps) = 0;
    virtual bool stepComplete(const char* phase, std::int32_t step) = 0;
    virtual void phaseFinish(const char* phase) = 0;
};

struct InterfaceInfo {
    const char* kind;
    std::int32_t major;
    std::int32_t minor;
};

struct VersionedInterface {
    virtual std::int32_t getAPILanguage() const { return 0; }
    virtual InterfaceInfo getInterfaceInfo() const = 0;
    virtual ~VersionedInterface() = default;
};

struct VersionedMonitor : VersionedInterface {
    InterfaceInfo getInterfaceInfo() const override { return {"IProgressMonitor", 1, 0}; }
    virtual void phaseStart(const char* phase, const char* parent, std::int32_t steps) = 0;
    virtual bool stepComplete(const char* phase, std::int32_t step) = 0;
    virtual void phaseFinish(const char* phase) = 0;
};

struct PlainLogger {
    virtual void log(std::int32_t severity, const char* text) = 0;
    virtual ~PlainLogger() = default;
};

struct VersionedLogger : VersionedInterface {
    InterfaceInfo getInterfaceInfo() const override { return {"ILogger", 1, 0}; }
    virtual void log(std::int32_t severity, const char* text) = 0;
};

struct StreamWriter : VersionedInterface {
    InterfaceInfo getInterfaceInfo() const override { return {"IStreamWriter", 1, 0}; }
    virtual std::int64_t write(const void* data, std::int64_t bytes) = 0;
};

[[noreturn]] inline void not_played(const char* method) {
    std::fprintf(stderr, "the simulated builder does not play %s\n", method);
    std::abort();
}

} // namespace simulated

// A slot that must be there, and that neither the attach library nor the player calls.
#define NOT_PLAYED(NAME) \
    virtual void NAME() { not_played(#NAME); }
