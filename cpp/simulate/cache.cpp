#include "cache.h"

#include <cstdio>
#include <cstdlib>

namespace simulated {

namespace {

constexpr const char* kFirstLine = "simulated timing cache 1";

// So that a cut or changed file is noticed; FNV-1a.
std::string check(const std::string& bytes) {
    std::uint64_t hash = 0xCBF29CE484222325ULL;
    for (const char c : bytes) {
        hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001B3ULL;
    }
    char text[24];
    std::snprintf(text, sizeof(text), "end %016llx\n", static_cast<unsigned long long>(hash));
    return text;
}

} // namespace

Origin origin_of(const Plan& plan) {
    std::string library = plan.rtx ? "tensorrt-rtx" : "tensorrt";
    for (int i = 0; i < 4; ++i) {
        library += (i == 0 ? " " : ".") + std::to_string(plan.version[i]);
    }
    return {library, plan.device};
}

// Line by line: what it is, the library, the device, a line for each tactic, and the check.
Contents::Fault Contents::read(const std::string& bytes) {
    const std::vector<std::string> lines = parted(bytes, '\n');
    if (lines.empty() || lines[0] != kFirstLine) {
        return Fault::foreign;
    }
    const std::size_t last = bytes.rfind("end ");
    if (lines.size() < 4 || last == std::string::npos || bytes.substr(last) != check(bytes.substr(0, last))) {
        return Fault::damaged;
    }
    const std::lock_guard<std::mutex> lock(mutex_);
    origin_ = {lines[1], lines[2]};
    for (std::size_t i = 3; i + 1 < lines.size(); ++i) {
        const std::size_t tab = lines[i].find('\t');
        if (tab != std::string::npos) {
            times_[lines[i].substr(0, tab)] = std::strtoll(lines[i].c_str() + tab, nullptr, 10);
        }
    }
    return Fault::none;
}

std::string Contents::written() const {
    const std::lock_guard<std::mutex> lock(mutex_);
    std::string bytes = std::string(kFirstLine) + "\n" + origin_.library + "\n" + origin_.device + "\n";
    for (const auto& [tactic, ns] : times_) {
        bytes += tactic + "\t" + std::to_string(ns) + "\n";
    }
    return bytes + check(bytes);
}

bool Contents::is_of(const Origin& other) const {
    return origin_.library == other.library && origin_.device == other.device;
}

bool Contents::knows(const std::string& tactic) const {
    const std::lock_guard<std::mutex> lock(mutex_);
    return times_.count(tactic) != 0;
}

void Contents::learn(const std::string& tactic, std::int64_t ns) {
    const std::lock_guard<std::mutex> lock(mutex_);
    times_.emplace(tactic, ns);
}

void Contents::forget_all() {
    const std::lock_guard<std::mutex> lock(mutex_);
    times_.clear();
}

// What both know stays as it is, as ITimingCache::combine has it.
void Contents::take_from(const Contents& other) {
    const std::scoped_lock lock(mutex_, other.mutex_);
    times_.insert(other.times_.begin(), other.times_.end());
}

} // namespace simulated
