// Real builds in pairs, one observed and one not, in one process, so that nothing else differs between the two.
//
//   paired_build LIBRARY DISTANCE PAIRS    with the attach library preloaded
//
// DISTANCE is how far createInferBuilder_INTERNAL lies behind getInferLibVersion in the library: looked up by name, the
// attach library would answer. Prints the seconds of each pair's builds, observed first.
#include "../../fixtures/clients/cpp/chain.hpp"

#include <dlfcn.h>
#include <chrono>
#include <cstdlib>

namespace {

using Create = void* (*)(void*, int32_t);

double build(Create create, chain::Logger& logger) {
    constexpr int kLayers = 20;
    constexpr int kChannels = 64;
    auto* builder = static_cast<nvinfer1::IBuilder*>(create(&logger, NV_TENSORRT_VERSION));
    chain::Job job = chain::prepare(builder, kLayers, kChannels);
    const auto start = std::chrono::steady_clock::now();
    const std::unique_ptr<nvinfer1::IHostMemory> plan{job.builder->buildSerializedNetwork(*job.network, *job.config)};
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
    if (plan == nullptr) {
        std::exit(1);
    }
    return took.count();
}

} // namespace

int main(int argc, char** argv) {
    void* library = argc == 4 ? dlopen(argv[1], RTLD_LAZY) : nullptr;
    if (library == nullptr) {
        return 2;
    }
    auto* version = static_cast<char*>(dlsym(library, "getInferLibVersion"));
    const auto plain = reinterpret_cast<Create>(version + std::atoll(argv[2]));
    const auto observed = reinterpret_cast<Create>(dlsym(library, "createInferBuilder_INTERNAL"));
    if (observed == plain) {
        return 3; // nothing is preloaded
    }
    chain::Logger logger;
    build(observed, logger);
    for (int pair = 0; pair < std::atoi(argv[3]); ++pair) {
        // Which goes first alternates, so that a slow drift of the machine cancels out.
        double with = 0;
        double without = 0;
        if (pair % 2 == 0) {
            with = build(observed, logger);
            without = build(plain, logger);
        } else {
            without = build(plain, logger);
            with = build(observed, logger);
        }
        std::printf("%.6f %.6f\n", with, without);
    }
    return 0;
}
