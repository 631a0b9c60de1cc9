// What an application does for one build: it configures, builds, and writes what came of it.
#pragma once

#include "families.h"
#include "files.h"
#include "plan.h"
#include "stage.h"

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <map>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>

namespace simulated {

// The application's own monitor, where the script has one.
template <class F> struct Monitor final : F::ProgressMonitor {
    explicit Monitor(const Build& of) : build(of) {}
    void phaseStart(const char* /*phase*/, const char* /*parent*/, std::int32_t /*steps*/) override {}
    bool stepComplete(const char* /*phase*/, std::int32_t /*step*/) override {
        const std::int64_t step = steps++;
        if (step == build.crash_at) {
            fault("crash", 0, 0);
        }
        return build.false_at < 0 || step < build.false_at;
    }
    void phaseFinish(const char* /*phase*/) override {}
    const Build& build;
    std::atomic<std::int64_t> steps{0};
};

struct Kept final : StreamWriter {
    std::int64_t write(const void* data, std::int64_t count) override {
        bytes.append(static_cast<const char*>(data), static_cast<std::size_t>(count));
        return count;
    }
    std::string bytes;
};

template <class F> class Application {
  public:
    Application(const Plan& plan, const Build& build, Object* builder)
        : plan_(plan),
          build_(build),
          object_(builder),
          builder_(behind<typename F::Builder>(*builder)),
          network_(builder_->createNetworkV2(0)),
          config_object_(builder_->createBuilderConfig()),
          config_(behind<typename F::BuilderConfig>(*config_object_)),
          monitor_(build) {}

    // Whether there is an engine, and everything was written.
    bool run() {
        add_profiles();
        load_cache();
        if (build_.own_monitor) {
            config_->setProgressMonitor(&monitor_);
        }
        bool written = write_all(Write::When::before, "");
        std::string engine;
        const bool built = build(engine);
        std::fprintf(built ? stdout : stderr, built ? "an engine was built\n" : "no engine\n");
        if (built) {
            written = write_all(Write::When::after, engine) && written;
        }
        written = write_all(Write::When::always, engine) && written;
        written = save_cache(built) && written;
        return built && written;
    }

  private:
    using Profile = typename F::Profile;

    void add_profiles() {
        std::map<std::int32_t, Object*> profiles;
        for (const simulated::Profile& shape : plan_.profiles) {
            Object*& profile = profiles[shape.index];
            if (profile == nullptr) {
                profile = builder_->createOptimizationProfile();
            }
            for (std::int32_t which = 0; which < 3; ++which) {
                typename F::Dims dimensions;
                for (const std::int64_t extent : shape.shapes[which]) {
                    using Extent = std::decay_t<decltype(dimensions.extents[0])>;
                    dimensions.extents[dimensions.count++] = static_cast<Extent>(extent);
                }
                behind<Profile>(*profile)->setDimensions(shape.input.c_str(), which, dimensions);
            }
        }
        for (const auto& [index, profile] : profiles) {
            config_->addOptimizationProfile(profile);
        }
    }

    // As trtexec does it: what cannot be used is replaced by a new cache.
    void load_cache() {
        if (!build_.cache.used) {
            return;
        }
        const std::string bytes = read_file(build_.cache.path);
        Object* cache = config_->createTimingCache(bytes.data(), bytes.size());
        if (cache == nullptr || !config_->setTimingCache(*cache, build_.cache.ignore_mismatch)) {
            cache = config_->createTimingCache(nullptr, 0);
            config_->setTimingCache(*cache, false);
        }
    }

    bool save_cache(bool built) {
        const CacheUse::Save when = build_.cache.save;
        if (!build_.cache.used || when == CacheUse::Save::never || (when == CacheUse::Save::success && !built)) {
            return true;
        }
        const Object* cache = config_->getTimingCache();
        const std::unique_ptr<Object> memory(behind<typename F::TimingCache>(*cache)->serialize());
        return write_file(build_.cache.path, bytes_of(*memory), 0);
    }

    bool build(std::string& engine) {
        if (build_.method == Build::Method::stream) {
            return stream(engine);
        }
        Object* text = nullptr;
        const std::unique_ptr<Object> built(by_return(text));
        if (built != nullptr && build_.method != Build::Method::engine) {
            engine = bytes_of(*built);
        }
        return built != nullptr;
    }

    Object* by_return(Object*& text) {
        if (build_.method == Build::Method::engine) {
            return with_config(*builder_, 0);
        }
        if (build_.method == Build::Method::kernel_text) {
            return with_text(*builder_, text, 0);
        }
        return builder_->buildSerializedNetwork(*network_, *config_object_);
    }

    static Object& any(); // an operand for the types alone

    // Methods that a version lacks; the script was checked for that.
    template <class B>
    auto with_config(B& builder, int) -> decltype(builder.buildEngineWithConfig(any(), any())) {
        return builder.buildEngineWithConfig(*network_, *config_object_);
    }
    template <class B> Object* with_config(B& /*builder*/, long) { return nullptr; }
    template <class B>
    auto with_text(B& builder, Object*& text, int)
        -> decltype(builder.buildSerializedNetworkWithKernelText(any(), any(), text)) {
        return builder.buildSerializedNetworkWithKernelText(*network_, *config_object_, text);
    }
    template <class B> Object* with_text(B& /*builder*/, Object*& /*text*/, long) { return nullptr; }
    template <class B>
    auto to_stream(B& builder, Kept& kept, int)
        -> decltype(builder.buildSerializedNetworkToStream(any(), any(), kept)) {
        return builder.buildSerializedNetworkToStream(*network_, *config_object_, kept);
    }
    template <class B> bool to_stream(B& /*builder*/, Kept& /*kept*/, long) { return false; }
    bool stream(std::string& engine) {
        Kept kept;
        const bool built = to_stream(*builder_, kept, 0);
        engine = kept.bytes;
        return built;
    }

    bool write_all(Write::When when, const std::string& engine) {
        bool written = true;
        for (const Write& write : build_.writes) {
            if (write.when == when) {
                const auto count = static_cast<std::size_t>(write.bytes);
                written =
                    write_file(write.path, write.bytes < 0 ? engine : std::string(count, '.'), write.ns) && written;
            }
        }
        return written;
    }

    static std::string bytes_of(const Object& memory) {
        const auto* held = behind<typename F::HostMemory>(memory);
        return {static_cast<const char*>(held->data()), held->size()};
    }

    const Plan& plan_;
    const Build& build_;
    std::unique_ptr<Object> object_;
    typename F::Builder* builder_;
    std::unique_ptr<Object> network_;
    std::unique_ptr<Object> config_object_;
    typename F::BuilderConfig* config_;
    Monitor<F> monitor_;
};

} // namespace simulated
