// The contents of a simulated timing cache: what it was measured with, and the time of each tactic.
#pragma once

#include "plan.h"

#include <cstdint>
#include <map>
#include <mutex>
#include <string>

namespace simulated {

// What a cache is good for. A cache of another device or version is rejected, as TensorRT does.
struct Origin {
    std::string library; // flavour and version
    std::string device;
};

class Contents {
  public:
    enum class Fault { none, foreign, damaged };

    explicit Contents(Origin origin) : origin_(std::move(origin)) {}

    // Takes what a file held. What cannot be read leaves the contents empty.
    Fault read(const std::string& bytes);
    std::string written() const;

    const Origin& origin() const { return origin_; }
    bool is_of(const Origin& other) const;
    bool knows(const std::string& tactic) const;
    void learn(const std::string& tactic, std::int64_t ns);
    void forget_all();
    void take_from(const Contents& other);

  private:
    Origin origin_;
    std::map<std::string, std::int64_t> times_;
    mutable std::mutex mutex_; // a build may time its tactics in several threads
};

Origin origin_of(const Plan& plan);

} // namespace simulated
