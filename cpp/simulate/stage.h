// Playing what a build does.
#pragma once

#include "cache.h"
#include "plan.h"

#include <atomic>
#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

namespace simulated {

// Whom a build speaks to: the progress monitor and the logger of the application.
struct Audience {
    virtual ~Audience() = default;
    virtual void start(const std::string& phase, const std::string& parent, std::int32_t steps) = 0;
    virtual bool step(const std::string& phase, std::int32_t step) = 0;
    virtual void finish(const std::string& phase) = 0;
    virtual void log(std::int32_t severity, const std::string& text) = 0;
};

class Stage {
  public:
    // `cache` is null where the build has none.
    Stage(const Build& build, Audience& audience, Contents* cache)
        : build_(build), audience_(audience), cache_(cache) {}

    // Plays the build to its end; whether it gives an engine.
    bool play();

  private:
    void play(const std::vector<Act>& acts, const std::string& around);
    void play(const Act& act, const std::string& around);
    void phase(const Act& act, const std::string& around);
    void step(const std::string& phase, std::int32_t step);
    void finish(const std::string& phase);
    void tactic(const Act& act);
    void in_threads(const Act& act, const std::string& around);
    bool is_stopped() const { return stopped_.load(); }

    const Build& build_;
    Audience& audience_;
    Contents* cache_;
    std::atomic<bool> stopped_{false};
    std::mutex mutex_;
    std::vector<std::string> left_open_; // by phases that something else must finish
};

// Pauses for a while, whatever signals come.
void pause_for(std::int64_t ns);

// Does what its name says; returns from few of them.
void fault(const std::string& name, std::int64_t code, std::int64_t ns);

} // namespace simulated
