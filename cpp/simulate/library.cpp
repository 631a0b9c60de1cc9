// The builder library: what a real one exports, and behind it builders that play a script.
#include "families.h"
#include "objects.h"
#include "plan.h"
#include "stage.h"

#include <atomic>
#include <memory>

namespace simulated {

namespace {

std::unique_ptr<Plan> g_plan;
std::atomic<std::size_t> g_builders{0};

// The application's logger has one of two shapes, by the version.
void log(void* logger, std::int32_t severity, const std::string& text) {
    if (logger == nullptr) {
        return;
    }
    if (has_versioned_logger(*g_plan)) {
        static_cast<VersionedLogger*>(logger)->log(severity, text.c_str());
    } else {
        static_cast<PlainLogger*>(logger)->log(severity, text.c_str());
    }
}

// The monitor of a configuration and the logger of its builder.
template <class F> class Attached final : public Audience {
  public:
    Attached(void* logger, typename F::ProgressMonitor* monitor) : logger_(logger), monitor_(monitor) {}

    void start(const std::string& phase, const std::string& parent, std::int32_t steps) override {
        if (monitor_ != nullptr) {
            monitor_->phaseStart(phase.c_str(), parent.empty() ? nullptr : parent.c_str(), steps);
        }
    }
    bool step(const std::string& phase, std::int32_t step) override {
        return monitor_ == nullptr || monitor_->stepComplete(phase.c_str(), step);
    }
    void finish(const std::string& phase) override {
        if (monitor_ != nullptr) {
            monitor_->phaseFinish(phase.c_str());
        }
    }
    void log(std::int32_t severity, const std::string& text) override { simulated::log(logger_, severity, text); }

  private:
    void* logger_;
    typename F::ProgressMonitor* monitor_;
};

// The same bytes for the same script: a magic word as the real one has it, then a word of warning.
std::string engine_of(const Plan& plan, std::size_t number, std::int64_t bytes) {
    std::string engine = std::string(plan.rtx ? "vtrt" : "ftrt") +
                         " simulated by stuckproof, no engine: " + origin_of(plan).library + " build " +
                         std::to_string(number + 1) + "\n";
    engine.resize(std::max(engine.size(), static_cast<std::size_t>(bytes)), '.');
    return engine;
}

template <class F> class BuilderOf final : public Both<typename F::Builder> {
  public:
    BuilderOf(void* logger, std::size_t number) : logger_(logger), number_(number) {}

    Object* createBuilderConfig() {
        return new ConfigOf<F>(*g_plan, [logger = logger_](std::int32_t severity, const std::string& text) {
            log(logger, severity, text);
        });
    }
    Object* createNetworkV2(std::uint32_t flags) { return new NetworkOf<F>(*g_plan, flags); }
    Object* createOptimizationProfile() { return new ProfileOf<F>(); }

    Object* buildSerializedNetwork(Object& /*network*/, Object& config) {
        return play(config) ? new Memory<F>(engine()) : nullptr;
    }
    Object* buildEngineWithConfig(Object& /*network*/, Object& config) { return play(config) ? new Object() : nullptr; }
    bool buildSerializedNetworkToStream(Object& /*network*/, Object& config, StreamWriter& writer) {
        if (!play(config)) {
            return false;
        }
        const std::string bytes = engine();
        writer.write(bytes.data(), static_cast<std::int64_t>(bytes.size()));
        return true;
    }
    Object* buildSerializedNetworkWithKernelText(Object& network, Object& config, Object*& text) {
        Object* built = buildSerializedNetwork(network, config);
        text = built == nullptr ? nullptr : new Memory<F>("no kernels: simulated");
        return built;
    }

  private:
    bool play(const Object& config) {
        auto* ours = static_cast<ConfigOf<F>*>(behind<typename F::BuilderConfig>(config));
        Attached<F> audience(logger_, ours->getProgressMonitor());
        return Stage(script(), audience, ours->contents()).play();
    }
    std::string engine() const { return engine_of(*g_plan, number_, script().engine_bytes); }
    const Build& script() const { return g_plan->builds[number_]; }

    void* logger_;
    std::size_t number_;
};

std::int32_t part(int index) { return g_plan == nullptr ? -1 : g_plan->version[index]; }

} // namespace

} // namespace simulated

#define EXPORTED extern "C" __attribute__((visibility("default")))

// By this name the attach library knows that nothing of this is real.
EXPORTED std::int32_t stuckproof_simulated() { return 1; }

EXPORTED void stuckproof_simulated_plan(const char* text) {
    simulated::g_plan = std::make_unique<simulated::Plan>(simulated::read_plan(text));
}

// Each builder plays the next build of the script.
EXPORTED void* createInferBuilder_INTERNAL(void* logger, std::int32_t version) {
    using namespace simulated;
    if (g_plan == nullptr || version != version_number(*g_plan)) {
        return nullptr;
    }
    const std::size_t number = g_builders++;
    if (number >= g_plan->builds.size()) {
        return nullptr;
    }
    return with_family(*g_plan,
                       [&](auto family) -> Object* { return new BuilderOf<decltype(family)>(logger, number); });
}

EXPORTED std::int32_t getInferLibVersion() {
    return simulated::g_plan == nullptr ? -1 : simulated::version_number(*simulated::g_plan);
}

// A real 9.x has the whole number only.
EXPORTED std::int32_t getInferLibMajorVersion() {
    const std::int32_t major = simulated::part(0);
    return major == 9 ? -1 : major;
}
EXPORTED std::int32_t getInferLibMinorVersion() { return simulated::part(1); }
EXPORTED std::int32_t getInferLibPatchVersion() { return simulated::part(2); }
EXPORTED std::int32_t getInferLibBuildVersion() { return simulated::part(3); }
