#include "stage.h"

#include <time.h>
#include <unistd.h>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <thread>

namespace simulated {

namespace {

std::int64_t now() {
    timespec time = {};
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1000000000LL + time.tv_nsec;
}

[[noreturn]] void hang() {
    for (;;) {
        ::pause();
    }
}

// Busy for the time given, or for ever.
void spin(std::int64_t ns) {
    const std::int64_t until = ns < 0 ? INT64_MAX : now() + ns;
    while (now() < until) {
    }
}

// Two threads, each with one lock, wait for the other's.
void deadlock() {
    std::mutex ours;
    std::mutex theirs;
    std::atomic<bool> taken{false};
    ours.lock();
    std::thread other([&] {
        theirs.lock();
        taken = true;
        ours.lock();
    });
    while (!taken) {
        std::this_thread::yield();
    }
    theirs.lock();
}

} // namespace

void pause_for(std::int64_t ns) {
    if (ns <= 0) {
        return;
    }
    const std::int64_t until = now() + ns;
    const timespec time = {until / 1000000000, until % 1000000000};
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &time, nullptr) == EINTR) {
    }
}

void fault(const std::string& name, std::int64_t code, std::int64_t ns) {
    if (name == "crash") {
        std::raise(SIGSEGV);
    } else if (name == "abort") {
        std::abort();
    } else if (name == "exit") {
        ::_exit(static_cast<int>(code));
    } else if (name == "hang") {
        hang();
    } else if (name == "spin") {
        spin(ns);
    } else if (name == "deadlock") {
        deadlock();
    } else if (name == "stop") {
        std::raise(SIGSTOP);
    }
}

} // namespace simulated
