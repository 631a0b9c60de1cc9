// What a builder hands out: memory, caches, networks and what they are made of, configurations.
#pragma once

#include "cache.h"
#include "families.h"
#include "plan.h"

#include <algorithm>
#include <deque>
#include <functional>
#include <string>
#include <utility>

namespace simulated {

// Says something to the application's logger.
using Say = std::function<void(std::int32_t severity, const std::string& text)>;

constexpr std::int32_t kSayError = 1;
constexpr std::int32_t kSayWarning = 2;

// A public object whose implementation is the same one, as in the library.
template <class Interface> struct Both : Object, Interface {
    Both() { implementation = static_cast<Interface*>(this); }
};

template <class F> struct Memory final : Both<typename F::HostMemory> {
    explicit Memory(std::string held) : bytes(std::move(held)) {}
    void* data() const override { return const_cast<char*>(bytes.data()); }
    std::size_t size() const override { return bytes.size(); }
    std::int32_t type() const override { return 5; } // DataType::kUINT8
    std::string bytes;
};

template <class F> typename F::Dims dimensions(const std::vector<std::int64_t>& extents) {
    typename F::Dims all;
    for (const std::int64_t extent : extents) {
        if (all.count < 8) {
            all.extents[all.count++] = static_cast<std::decay_t<decltype(all.extents[0])>>(extent);
        }
    }
    return all;
}

template <class F> struct TensorOf final : Both<typename F::Tensor> {
    explicit TensorOf(const Tensor& described) : tensor(described) {}
    const char* getName() const override { return tensor.name.c_str(); }
    typename F::Dims getDimensions() const override { return dimensions<F>(tensor.extents); }
    std::int32_t getType() const override { return tensor.type; }
    const Tensor& tensor;
};

template <class F> struct LayerOf final : Both<typename F::Layer> {
    explicit LayerOf(std::int32_t number) : kind(number) {}
    std::int32_t getType() const override { return kind; }
    std::int32_t kind;
};

template <class F> struct NetworkOf final : Both<typename F::NetworkDefinition> {
    NetworkOf(const Plan& plan, std::uint32_t created_with) : flags(created_with) {
        for (const Tensor& input : plan.inputs) {
            inputs.emplace_back(input);
        }
        for (const Tensor& output : plan.outputs) {
            outputs.emplace_back(output);
        }
        for (const std::int32_t kind : plan.layers) {
            layers.emplace_back(kind);
        }
    }
    std::int32_t getNbLayers() const override { return static_cast<std::int32_t>(layers.size()); }
    std::int32_t getNbInputs() const override { return static_cast<std::int32_t>(inputs.size()); }
    std::int32_t getNbOutputs() const override { return static_cast<std::int32_t>(outputs.size()); }
    Object* getLayer(std::int32_t index) const override { return &layers[static_cast<std::size_t>(index)]; }
    Object* getInput(std::int32_t index) const override { return &inputs[static_cast<std::size_t>(index)]; }
    Object* getOutput(std::int32_t index) const override { return &outputs[static_cast<std::size_t>(index)]; }
    std::uint32_t getFlags() const override { return flags; }
    std::uint32_t flags;
    mutable std::deque<TensorOf<F>> inputs;
    mutable std::deque<TensorOf<F>> outputs;
    mutable std::deque<LayerOf<F>> layers;
};

template <class F> struct ProfileOf final : Both<typename F::Profile> {
    bool setDimensions(const char* input, std::int32_t which, const typename F::Dims& shape) override {
        shapes[{input, which}] = shape;
        return true;
    }
    typename F::Dims getDimensions(const char* input, std::int32_t which) const override {
        const auto found = shapes.find({input, which});
        return found == shapes.end() ? typename F::Dims{} : found->second;
    }
    std::map<std::pair<std::string, std::int32_t>, typename F::Dims> shapes;
};

template <class F> struct CacheOf final : Both<typename F::TimingCache> {
    explicit CacheOf(const Plan& plan) : contents(origin_of(plan)) {}
    Object* serialize() const override { return new Memory<F>(contents.written()); }
    bool combine(const Object& other, bool ignore_mismatch) override {
        const Contents& theirs = static_cast<const CacheOf*>(behind<typename F::TimingCache>(other))->contents;
        if (!ignore_mismatch && !contents.is_of(theirs.origin())) {
            return false;
        }
        contents.take_from(theirs);
        return true;
    }
    bool reset() override {
        contents.forget_all();
        return true;
    }
    Contents contents;
};

template <class F> class ConfigOf final : public Both<typename F::BuilderConfig> {
  public:
    ConfigOf(const Plan& plan, Say say) : plan_(plan), say_(std::move(say)) {}

    std::int32_t getFlags() const { return fact("flags"); }
    std::int32_t getAvgTimingIterations() const { return fact("avgTimingIterations"); }
    std::int32_t getEngineCapability() const { return fact("engineCapability"); }
    std::int32_t getProfilingVerbosity() const { return fact("profilingVerbosity"); }
    std::int32_t getTacticSources() const { return fact("tacticSources"); }
    std::int32_t getBuilderOptimizationLevel() const { return fact("optimizationLevel"); }
    std::int32_t getHardwareCompatibilityLevel() const { return fact("hardwareCompatibility"); }
    std::int32_t getMaxAuxStreams() const { return fact("maxAuxStreams"); }
    std::int32_t getRuntimePlatform() const { return fact("runtimePlatform"); }
    std::int32_t getMaxNbTactics() const { return fact("maxTactics"); }
    std::int32_t getTilingOptimizationLevel() const { return fact("tilingLevel"); }
    std::int64_t getL2LimitForTiling() const { return number("l2LimitForTiling"); }
    std::int32_t getQuantizationFlags() const { return fact("quantizationFlags"); }
    std::int32_t getDefaultDeviceType() const { return fact("defaultDevice"); }
    std::int32_t getDLACore() const { return fact("dlaCore"); }
    std::int32_t getNbComputeCapabilities() const { return static_cast<std::int32_t>(plan_.capabilities.size()); }
    std::int32_t getComputeCapability(std::int32_t index) const {
        return plan_.capabilities[static_cast<std::size_t>(index)];
    }
    // The names are those of the evidence; other pools have no limit.
    std::size_t getMemoryPoolLimit(std::int32_t pool) const {
        const char* name = pool == 0 ? "poolWorkspace" : pool == 4 ? "poolTacticDram" : "poolTacticSharedMemory";
        return static_cast<std::size_t>(number(name));
    }
    std::int32_t getNbOptimizationProfiles() const { return profiles_; }
    std::int32_t addOptimizationProfile(const Object* /*profile*/) { return profiles_++; }

    // What cannot be read gives no cache, and the messages of the real library.
    Object* createTimingCache(const void* blob, std::size_t bytes) const {
        auto* cache = new CacheOf<F>(plan_);
        if (bytes == 0) {
            return cache;
        }
        switch (cache->contents.read(std::string(static_cast<const char*>(blob), bytes))) {
        case Contents::Fault::none: return cache;
        case Contents::Fault::foreign:
            say_(kSayError,
                 "1: [stdArchiveReader.cpp::StdArchiveReaderInitCommon::36] Error Code 1: Serialization "
                 "(Serialization assertion magicTagRead == kMAGIC_TAG failed.Magic tag does not match)");
            break;
        case Contents::Fault::damaged:
            say_(kSayError,
                 "1: [stdArchiveReader.cpp::StdArchiveReaderInitCommon::52] Error Code 1: Serialization "
                 "(Size specified in header does not match archive size)");
            break;
        }
        say_(kSayError, "4: The timing cache will not be used!");
        delete cache;
        return nullptr;
    }

    bool setTimingCache(const Object& cache, bool ignore_mismatch) {
        const Contents& theirs = static_cast<const CacheOf<F>*>(behind<typename F::TimingCache>(cache))->contents;
        const Origin ours = origin_of(plan_);
        if (!ignore_mismatch && !theirs.is_of(ours)) {
            say_(kSayError,
                 "[timingCache.cpp::validate::905] Error Code 4: API Usage Error (Timing cache header "
                 "mismatch:Incoming ITimingCache: UUID = " +
                     theirs.origin().device + ", library = " + theirs.origin().library + "\nRuntime device: UUID = " +
                     ours.device + ", library = " + ours.library + "\nThe incoming cache will not be used!)");
            return false;
        }
        cache_ = &cache;
        return true;
    }
    const Object* getTimingCache() const { return cache_; }

    void setProgressMonitor(typename F::ProgressMonitor* monitor) { monitor_ = monitor; }
    typename F::ProgressMonitor* getProgressMonitor() const { return monitor_; }

    // TensorRT-RTX takes a cache and measures nothing.
    Contents* contents() const {
        if (cache_ == nullptr || plan_.rtx) {
            return nullptr;
        }
        auto* known = static_cast<const CacheOf<F>*>(behind<typename F::TimingCache>(*cache_));
        return &const_cast<CacheOf<F>*>(known)->contents;
    }

  private:
    std::int64_t number(const char* name) const {
        const auto found = plan_.config.find(name);
        return found == plan_.config.end() ? 0 : found->second;
    }
    std::int32_t fact(const char* name) const { return static_cast<std::int32_t>(number(name)); }

    const Plan& plan_;
    Say say_;
    const Object* cache_ = nullptr;
    typename F::ProgressMonitor* monitor_ = nullptr;
    std::int32_t profiles_ = 0;
};

} // namespace simulated
