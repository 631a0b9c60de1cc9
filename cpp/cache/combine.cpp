// Combines two timing caches of one library with that library's own ITimingCache::combine, in a process of its own.
//
//   combine LIBRARY FLAVOUR MAJOR MINOR PATCH BUILD BASE OURS OUT
//
// OUT is made new. What the base knows already stays as it is. Exit code 0 when OUT is whole; else one line on standard
// error says why not.
#include "../fact_layouts.h"
#include "../layouts.h"
#include "../object.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <unistd.h>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace {

using namespace stuckproof;

// VTimingCache and VHostMemory are the same in every version, and createTimingCache stands two before getTimingCache.
constexpr unsigned kSerialize = 2;
constexpr unsigned kCombine = 3;
constexpr unsigned kData = 2;
constexpr unsigned kBeforeGet = 2;

[[noreturn]] void fail(const char* what, const char* which = "") {
    std::fprintf(stderr, "%s%s\n", what, which);
    std::exit(1);
}

// Loggers of both shapes: what the library says about the caches goes to standard error.
void log(void* /*self*/, std::int32_t severity, const char* text) {
    if (severity <= 1) {
        std::fprintf(stderr, "%s\n", text);
    }
}
std::int32_t language(void* /*self*/) { return 0; }
struct InterfaceInfo {
    const char* kind;
    std::int32_t major;
    std::int32_t minor;
};
InterfaceInfo info(void* /*self*/) { return {"ILogger", 1, 0}; }
void destroy(void* /*self*/) {}

template <class Function> const void* address(Function function) { return reinterpret_cast<const void*>(function); }

struct Logger {
    const void* const* table;
};

const void* const kPlain[] = {address(log), address(destroy), address(destroy)};
const void* const kVersioned[] = {address(language), address(info), address(destroy), address(destroy), address(log)};

struct Bytes {
    char* data = nullptr;
    std::size_t size = 0;
};

Bytes read_file(const char* path) {
    const int fd = ::open(path, O_RDONLY | O_CLOEXEC);
    const off_t size = fd < 0 ? -1 : ::lseek(fd, 0, SEEK_END);
    Bytes bytes;
    if (size >= 0) {
        bytes.data = static_cast<char*>(std::malloc(static_cast<std::size_t>(size) + 1));
        bytes.size = static_cast<std::size_t>(size);
    }
    std::size_t got = 0;
    while (bytes.data != nullptr && got < bytes.size) {
        const ssize_t count = ::pread(fd, bytes.data + got, bytes.size - got, static_cast<off_t>(got));
        if (count <= 0) {
            break;
        }
        got += static_cast<std::size_t>(count);
    }
    if (bytes.data == nullptr || got != bytes.size) {
        fail("cannot read ", path);
    }
    ::close(fd);
    return bytes;
}

void write_file(const char* path, const Bytes& bytes) {
    const int fd = ::open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    std::size_t done = 0;
    while (fd >= 0 && done < bytes.size) {
        const ssize_t count = ::write(fd, bytes.data + done, bytes.size - done);
        if (count <= 0) {
            break;
        }
        done += static_cast<std::size_t>(count);
    }
    if (fd < 0 || done != bytes.size || ::fsync(fd) != 0 || ::close(fd) != 0) {
        fail("cannot write ", path);
    }
}

// A simulated library wants to be told what it is.
void tell_simulated(void* library, bool rtx, const int (&version)[4]) {
    void* tell = dlsym(library, "stuckproof_simulated_plan");
    if (tell == nullptr) {
        return;
    }
    char plan[256];
    std::snprintf(plan, sizeof(plan), "library %d %d %d %d %d none\nplayer 0 0 0 0 0\nbuild serialized stop 1 0\n", rtx,
                  version[0], version[1], version[2], version[3]);
    reinterpret_cast<void (*)(const char*)>(tell)(plan);
}

} // namespace

int main(int argc, char** argv) {
    if (argc != 10) {
        fail("it is started by stuckproof");
    }
    const bool rtx = std::strcmp(argv[2], "tensorrt-rtx") == 0;
    const Flavour flavour = rtx ? Flavour::rtx : Flavour::tensorrt;
    const int version[4] = {std::atoi(argv[3]), std::atoi(argv[4]), std::atoi(argv[5]), std::atoi(argv[6])};
    const Layout* layout = find_layout(flavour, version[0], version[1]);
    const FactLayout* facts = find_fact_layout(flavour, version[0], version[1]);
    if (layout == nullptr || facts == nullptr || facts->timing_cache == kNone || layout->log == kNone) {
        fail("how this version combines timing caches is not known to stuckproof");
    }
    void* library = dlopen(argv[1], RTLD_NOW);
    if (library == nullptr) {
        fail(dlerror());
    }
    tell_simulated(library, rtx, version);
    using Create = void* (*)(void*, std::int32_t);
    const auto create = reinterpret_cast<Create>(dlsym(library, "createInferBuilder_INTERNAL"));
    Logger logger = {layout->log == 0 ? kPlain : kVersioned};
    const int number = version[0] * (version[0] < 10 ? 1000 : 10000) + version[1] * 100 + version[2];
    void* builder = create == nullptr ? nullptr : create(&logger, number);
    if (builder == nullptr) {
        fail("the library made no builder");
    }
    void* impl = implementation(builder);
    void* config = method<void* (*)(void*)>(impl, facts->create_config)(impl);
    if (config == nullptr) {
        fail("the library made no builder configuration");
    }
    void* config_impl = implementation(config);
    const auto create_cache =
        method<void* (*)(void*, const void*, std::size_t)>(config_impl, facts->timing_cache - kBeforeGet);
    void* caches[2] = {};
    for (int i = 0; i < 2; ++i) {
        const Bytes bytes = read_file(argv[7 + i]);
        caches[i] = create_cache(config_impl, bytes.data, bytes.size);
        if (caches[i] == nullptr) {
            fail("the library takes no timing cache from ", argv[7 + i]);
        }
    }
    void* base = implementation(caches[0]);
    if (!method<bool (*)(void*, void*, bool)>(base, kCombine)(base, caches[1], false)) {
        fail("the library does not combine the two timing caches");
    }
    void* memory = method<void* (*)(void*)>(base, kSerialize)(base);
    if (memory == nullptr) {
        fail("the library did not serialise the timing cache");
    }
    void* held = implementation(memory);
    Bytes out;
    out.data = static_cast<char*>(method<void* (*)(void*)>(held, kData)(held));
    out.size = method<std::size_t (*)(void*)>(held, kHostMemorySize)(held);
    write_file(argv[9], out);
    ::_exit(0); // what a library does at its end is no part of this
}
