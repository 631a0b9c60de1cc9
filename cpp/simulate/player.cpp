// The application: builds with the simulated library as a tool of TensorRT's own would, and writes what its script
// says.
//
//   player PLAN LIBRARY [PYTHON]     (all three are paths; the last stands for a Python interpreter)
#include "application.h"
#include "families.h"
#include "files.h"
#include "plan.h"
#include "stage.h"

#include <dlfcn.h>
#include <atomic>
#include <csignal>
#include <cstdio>
#include <string>
#include <thread>
#include <vector>

// Weak, and bound at the first call: so a program that was linked with the library reaches it.
extern "C" __attribute__((weak)) void* createInferBuilder_INTERNAL(void* logger, std::int32_t version);

namespace simulated {

namespace {

constexpr std::int32_t kLastShown = 2; // kWARNING

struct Logger : PlainLogger, VersionedLogger {
    void log(std::int32_t severity, const char* text) override {
        constexpr const char* kSigns[] = {"F", "E", "W", "I", "V"};
        if (severity >= 0 && severity <= kLastShown) {
            std::fprintf(stderr, "[TRT] [%s] %s\n", kSigns[severity], text);
        }
    }
};

int fail(const char* what) {
    std::fprintf(stderr, "the simulated builder cannot start: %s\n", what);
    return 125;
}

using Create = void* (*)(void* logger, std::int32_t version);

// Taking the function's address instead would bind it before the library is there.
void* create_linked(void* logger, std::int32_t version) { return createInferBuilder_INTERNAL(logger, version); }

bool run_all(const Plan& plan, Create create) {
    static Logger logger;
    void* shape = has_versioned_logger(plan) ? static_cast<void*>(static_cast<VersionedLogger*>(&logger))
                                             : static_cast<void*>(static_cast<PlainLogger*>(&logger));
    std::atomic<bool> all{true};
    std::vector<std::thread> threads;
    for (const Build& build : plan.builds) {
        auto* builder = static_cast<Object*>(create(shape, version_number(plan)));
        auto run = [&, builder] {
            const bool done = builder != nullptr && with_family(plan, [&](auto family) {
                                  return Application<decltype(family)>(plan, build, builder).run();
                              });
            if (!done) {
                all = false;
            }
        };
        if (plan.at_once) {
            threads.emplace_back(run);
        } else {
            run();
        }
    }
    for (std::thread& thread : threads) {
        thread.join();
    }
    return all;
}

} // namespace

} // namespace simulated

int main(int argc, char** argv) {
    using namespace simulated;
    if (argc < 3) {
        return fail("it is started by `stuckproof simulate`");
    }
    const std::string text = read_file(argv[1]);
    const Plan plan = read_plan(text);
    if (argc > 3 && dlopen(argv[3], RTLD_NOW) == nullptr) {
        return fail(dlerror());
    }
    void* library = dlopen(argv[2], RTLD_NOW | (plan.linked ? RTLD_GLOBAL : RTLD_LOCAL));
    if (library == nullptr) {
        return fail(dlerror());
    }
    reinterpret_cast<void (*)(const char*)>(dlsym(library, "stuckproof_simulated_plan"))(text.c_str());
    if (plan.ignore_sigterm) {
        std::signal(SIGTERM, SIG_IGN);
    }
    auto looked_up = reinterpret_cast<Create>(dlsym(library, "createInferBuilder_INTERNAL"));
    const bool built = run_all(plan, plan.linked ? create_linked : looked_up);
    if (plan.crash_at_exit) {
        fault("crash", 0, 0);
    }
    return plan.exit_code >= 0 ? plan.exit_code : built ? 0 : 1;
}
