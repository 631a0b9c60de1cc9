// What one callback costs: the monitor's own functions, called as a library calls them, each call timed on its own.
//
//   callback CALLS    with STUCKPROOF_WIRE set; prints one JSON object, nanoseconds
#include "../library.h"
#include "../monitor.h"
#include "../recorder.h"
#include "../tests/fake_builder.h"

#include <x86intrin.h>
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <vector>

namespace {

using Step = bool (*)(void*, const char*, std::int32_t);

std::uint64_t ticks() {
    unsigned processor = 0;
    const std::uint64_t now = __rdtscp(&processor);
    _mm_lfence();
    return now;
}

double nanoseconds() {
    timespec time = {};
    clock_gettime(CLOCK_MONOTONIC, &time);
    return static_cast<double>(time.tv_sec) * 1e9 + static_cast<double>(time.tv_nsec);
}

double ticks_per_nanosecond() {
    const double start = nanoseconds();
    const std::uint64_t first = ticks();
    while (nanoseconds() - start < 5e7) {
    }
    return static_cast<double>(ticks() - first) / (nanoseconds() - start);
}

struct Spread {
    double median;
    double p99;
    double p999;
    double worst;
};

template <class Call> Spread measure(int calls, double rate, Call call) {
    std::vector<double> cost(static_cast<std::size_t>(calls));
    for (double& one : cost) {
        const std::uint64_t start = ticks();
        call();
        one = static_cast<double>(ticks() - start) / rate;
    }
    std::sort(cost.begin(), cost.end());
    const auto at = [&](double share) { return cost[static_cast<std::size_t>(share * (calls - 1))]; };
    return {at(0.5), at(0.99), at(0.999), at(1.0)};
}

} // namespace

int main(int argc, char** argv) {
    const int calls = argc > 1 ? std::atoi(argv[1]) : 200000;
    stuckproof::Recorder* recorder = stuckproof::recorder();
    stuckproof::Library* library = stuckproof::library_of(reinterpret_cast<const void*>(createInferBuilder_INTERNAL));
    if (recorder == nullptr || library == nullptr || !stuckproof::make_monitor_table(library, nullptr)) {
        std::fprintf(stderr, "nothing to record into; set STUCKPROOF_WIRE\n");
        return 1;
    }
    stuckproof::Monitor* monitor = stuckproof::new_monitor(library, recorder, 1);
    const auto step = reinterpret_cast<Step>(const_cast<void*>(monitor->table[library->layout->monitor_first + 1]));
    const double rate = ticks_per_nanosecond();
    const char* names[] = {"Building engine", "Timing tactics", "Computing reformatting costs", "Timing graph nodes"};
    std::int32_t number = 0;
    const auto one_step = [&] {
        const std::int32_t now = number++;
        step(monitor, names[now & 3], now);
    };
    measure(20000, rate, one_step);
    const Spread empty = measure(calls, rate, [] {});
    const Spread spread = measure(calls, rate, one_step);
    std::printf("{\"calls\": %d, \"median\": %.1f, \"p99\": %.1f, \"p999\": %.1f, \"worst\": %.1f, \"timer\": %.1f}\n",
                calls, spread.median, spread.p99, spread.p999, spread.worst, empty.median);
    return 0;
}
