// Many threads, builds, configs and forks through the attach library's code, for the sanitizers.
//
//   stress THREADS BUILDS STEPS own|shared|fork
//
// Prints how many builds, phases, steps and warnings it made, which the caller compares with what the wire holds.
#include "../builder.h"
#include "fake_builder.h"

#include <sys/wait.h>
#include <unistd.h>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <vector>

namespace {

constexpr int kWorkers = 3;

// An application's logger, with the shape of ILogger in RTX 1.7.
struct Logger {
    virtual int language() const { return 0; }
    virtual int info() const { return 0; }
    virtual ~Logger() = default;
    virtual void log(int severity, const char* text) {
        if (severity < 0 || text == nullptr) {
            std::abort();
        }
        heard.fetch_add(1);
    }
    std::atomic<int> heard{0};
};

void build_many(Logger& logger, void* shared_config, int builds) {
    for (int i = 0; i < builds; ++i) {
        void* builder = stuckproof::create_observed(createInferBuilder_INTERNAL, &logger, 10700);
        void* config = shared_config != nullptr ? shared_config : fake_config();
        fake_build(builder, config);
        if (shared_config == nullptr) {
            fake_destroy(config);
        }
        fake_destroy(builder);
    }
}

void build_in_threads(Logger& logger, void* config, int threads, int builds) {
    std::vector<std::thread> all;
    for (int i = 0; i < threads; ++i) {
        all.emplace_back([&] { build_many(logger, config, builds); });
    }
    for (std::thread& thread : all) {
        thread.join();
    }
}

} // namespace

int main(int argc, char** argv) {
    if (argc != 5) {
        return 2;
    }
    const int threads = std::atoi(argv[1]);
    const int builds = std::atoi(argv[2]);
    const int steps = std::atoi(argv[3]);
    fake_configure(kWorkers, steps);
    Logger logger;
    int processes = 1;
    if (std::strcmp(argv[4], "fork") == 0) {
        build_many(logger, nullptr, 1); // the parent's recorder is open when it forks
        processes = 3;
        for (int i = 1; i < processes; ++i) {
            const pid_t child = fork();
            if (child == 0) {
                build_many(logger, nullptr, builds);
                _exit(0);
            }
            int status = 0;
            if (waitpid(child, &status, 0) != child || status != 0) {
                return 1;
            }
        }
        std::printf("builds %d steps %d\n", 1 + 2 * builds, (1 + 2 * builds) * (kWorkers * steps + 1));
        return 0;
    }
    const bool shared = std::strcmp(argv[4], "shared") == 0;
    void* config = shared ? fake_config() : nullptr;
    build_in_threads(logger, config, threads, builds);
    if (logger.heard != threads * builds * kWorkers * 2) {
        std::printf("the application's logger heard %d messages\n", logger.heard.load());
        return 1;
    }
    if (config != nullptr) {
        fake_destroy(config);
    }
    std::printf("builds %d steps %d\n", threads * builds, threads * builds * (kWorkers * steps + 1));
    return 0;
}
