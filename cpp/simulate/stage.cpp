#include "stage.h"

#include <thread>

namespace simulated {

namespace {

constexpr std::int32_t kError = 1;
constexpr std::int64_t kPage = 4096;

// Takes memory for good, a page at a time, over the given time.
void grow(std::int64_t bytes, std::int64_t ns) {
    constexpr std::int64_t kPieces = 64;
    for (std::int64_t piece = 0; piece < kPieces; ++piece) {
        const std::int64_t size = bytes / kPieces;
        auto* memory = static_cast<volatile char*>(std::malloc(static_cast<std::size_t>(size)));
        for (std::int64_t at = 0; memory != nullptr && at < size; at += kPage) {
            memory[at] = 1;
        }
        pause_for(ns / kPieces);
    }
}

} // namespace

bool Stage::play() {
    play(build_.acts, "");
    if (!is_stopped()) {
        return build_.returns_engine;
    }
    while (!left_open_.empty()) {
        finish(std::string(left_open_.back()));
    }
    if (build_.on_false == Build::OnFalse::engine) {
        return true;
    }
    audience_.log(kError, "IBuilder::buildSerializedNetwork: Error Code 7: BuildCanceled (Build canceled by user)");
    return false;
}

void Stage::play(const std::vector<Act>& acts, const std::string& around) {
    for (const Act& act : acts) {
        if (is_stopped()) {
            return;
        }
        play(act, around);
    }
}

void Stage::play(const Act& act, const std::string& around) {
    switch (act.kind) {
    case Act::Kind::phase: phase(act, around); break;
    case Act::Kind::step: step(act.name.empty() ? around : act.name, static_cast<std::int32_t>(act.number)); break;
    case Act::Kind::finish: finish(act.name); break;
    case Act::Kind::silence: pause_for(act.ns); break;
    case Act::Kind::message: audience_.log(static_cast<std::int32_t>(act.number), act.name); break;
    case Act::Kind::tactic: tactic(act); break;
    case Act::Kind::threads: in_threads(act, around); break;
    case Act::Kind::times:
        for (std::int64_t i = 0; i < act.number && !is_stopped(); ++i) {
            play(act.body, around);
        }
        break;
    case Act::Kind::fault: fault(act.name, act.number, act.ns); break;
    case Act::Kind::grow: grow(act.number, act.ns); break;
    }
}

// The steps that a phase reports by itself come after what is in it; with no pause given it reports none.
void Stage::phase(const Act& act, const std::string& around) {
    const std::string& parent = act.parent.empty() ? around : act.parent;
    audience_.start(act.name, parent, static_cast<std::int32_t>(act.number));
    if (act.open) {
        const std::lock_guard<std::mutex> lock(mutex_);
        left_open_.push_back(act.name);
    }
    play(act.body, act.name);
    for (std::int64_t i = 0; act.ns >= 0 && i < act.number && !is_stopped(); ++i) {
        pause_for(act.ns);
        step(act.name, static_cast<std::int32_t>(i));
    }
    if (!act.open) {
        audience_.finish(act.name);
    }
}

void Stage::step(const std::string& phase, std::int32_t step) {
    if (!audience_.step(phase, step) && build_.on_false != Build::OnFalse::ignore) {
        stopped_ = true;
    }
}

void Stage::finish(const std::string& phase) {
    {
        const std::lock_guard<std::mutex> lock(mutex_);
        for (std::size_t i = left_open_.size(); i > 0; --i) {
            if (left_open_[i - 1] == phase) {
                left_open_.erase(left_open_.begin() + static_cast<std::ptrdiff_t>(i) - 1);
                break;
            }
        }
    }
    audience_.finish(phase);
}

// A tactic that the cache knows costs nothing.
void Stage::tactic(const Act& act) {
    if (cache_ != nullptr && cache_->knows(act.name)) {
        return;
    }
    pause_for(act.ns);
    if (cache_ != nullptr) {
        cache_->learn(act.name, act.ns);
    }
}

void Stage::in_threads(const Act& act, const std::string& around) {
    std::vector<std::thread> threads;
    for (std::int64_t i = 0; i < act.number; ++i) {
        threads.emplace_back([&] { play(act.body, around); });
    }
    for (std::thread& thread : threads) {
        thread.join();
    }
}

} // namespace simulated
