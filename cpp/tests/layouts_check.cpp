// Compares cpp/layouts.h and cpp/fact_layouts.h with the official headers it is compiled against:
// -DFLAVOUR=rtx|tensorrt -DMAJOR=n -DMINOR=n.
//
// In the Itanium C++ ABI a pointer to a virtual member function is one plus its offset in the table, and a virtual
// table can be read from an object: both say which slot a method has, without any library.
#include "../fact_layouts.h"
#include "../layouts.h"

#include <NvInfer.h>
#include <NvInferImpl.h>

#include <cstdio>
#include <cstring>
#include <type_traits>

namespace {

using namespace nvinfer1;

int g_faults = 0;
int g_checked = 0;

template <class Member> int slot(Member member) {
    static_assert(sizeof(member) == 16);
    std::intptr_t parts[2];
    std::memcpy(parts, &member, sizeof(parts));
    return static_cast<int>((parts[0] - 1) / 8);
}

void expect(const char* what, int in_table, int in_headers) {
    ++g_checked;
    if (in_table != in_headers) {
        ++g_faults;
        std::printf("%s: the table says slot %d, the headers say %d\n", what, in_table, in_headers);
    }
}

// The slot of a method that a version may lack: kNone where it does.
#define OPTIONAL_SLOT(NAME)                                                                            \
    template <class T> auto slot_of_##NAME(int) -> decltype(slot(&T::NAME)) { return slot(&T::NAME); } \
    template <class T> int slot_of_##NAME(...) { return stuckproof::kNone; }
OPTIONAL_SLOT(buildEngineWithConfig)
OPTIONAL_SLOT(buildSerializedNetworkToStream)
OPTIONAL_SLOT(buildSerializedNetworkWithKernelText)
OPTIONAL_SLOT(getNbComputeCapabilities)
OPTIONAL_SLOT(getComputeCapability)
OPTIONAL_SLOT(getQuantizationFlags)

struct Monitor : IProgressMonitor {
    void phaseStart(char const*, char const*, std::int32_t) noexcept override {}
    bool stepComplete(char const*, std::int32_t) noexcept override { return true; }
    void phaseFinish(char const*) noexcept override {}
};

// A thin public object is a virtual table pointer and then the implementation.
struct Memory : IHostMemory {
    static constexpr std::size_t kPublicBytes = sizeof(IHostMemory);
};

// A slot that is not asked on purpose is kNone in the table, whatever the headers say.
void expect_fact(const char* what, int in_table, int in_headers) {
    if (in_table != stuckproof::kNone) {
        expect(what, in_table, in_headers);
    }
}

void check_configuration(const stuckproof::FactLayout& facts) {
    using Config = apiv::VBuilderConfig;
    const int in_headers[] = {
        slot(&Config::getFlags),
        slot(&Config::getAvgTimingIterations),
        slot(&Config::getEngineCapability),
        slot(&Config::getNbOptimizationProfiles),
        slot(&Config::getProfilingVerbosity),
        slot(&Config::getTacticSources),
        slot(&Config::getBuilderOptimizationLevel),
        slot(&Config::getHardwareCompatibilityLevel),
        slot(&Config::getMaxAuxStreams),
        slot(&Config::getRuntimePlatform),
        slot(&Config::getMaxNbTactics),
        slot(&Config::getTilingOptimizationLevel),
        slot(&Config::getL2LimitForTiling),
        slot_of_getNbComputeCapabilities<Config>(0),
        slot_of_getQuantizationFlags<Config>(0),
        slot(&Config::getDefaultDeviceType),
        slot(&Config::getDLACore),
    };
    static_assert(sizeof(in_headers) / sizeof(in_headers[0]) == stuckproof::kConfigFactCount);
    for (unsigned i = 0; i < stuckproof::kConfigFactCount; ++i) {
        expect_fact(stuckproof::kConfigFacts[i], facts.config[i], in_headers[i]);
    }
    expect("getMemoryPoolLimit", facts.memory_pool, slot(&Config::getMemoryPoolLimit));
    expect_fact("getTimingCache", facts.timing_cache, slot(&Config::getTimingCache));
    expect("getComputeCapability", facts.compute_capability, slot_of_getComputeCapability<Config>(0));
    expect("addOptimizationProfile", facts.add_profile, slot(&Config::addOptimizationProfile));
    expect("createBuilderConfig", facts.create_config, slot(&apiv::VBuilder::createBuilderConfig));
}

void check_network(const stuckproof::FactLayout& facts) {
    using Network = apiv::VNetworkDefinition;
    expect("getNbLayers", facts.network.layer_count, slot(&Network::getNbLayers));
    expect("getLayer", facts.network.layer, slot(&Network::getLayer));
    expect("getNbInputs", facts.network.input_count, slot(&Network::getNbInputs));
    expect("getInput", facts.network.input, slot(&Network::getInput));
    expect("getNbOutputs", facts.network.output_count, slot(&Network::getNbOutputs));
    expect("getOutput", facts.network.output, slot(&Network::getOutput));
    expect("VNetworkDefinition::getFlags", facts.network.flags, slot(&Network::getFlags));
    expect("VTensor::getType", facts.tensor_type, slot(&apiv::VTensor::getType));
    expect("VTensor::getName", stuckproof::kTensorName, slot(&apiv::VTensor::getName));
    expect("VTensor::getDimensions", stuckproof::kTensorDimensions, slot(&apiv::VTensor::getDimensions));
    expect("VLayer::getType", stuckproof::kLayerType, slot(&apiv::VLayer::getType));
    expect("VOptimizationProfile::getDimensions", stuckproof::kProfileDimensions,
           slot(&apiv::VOptimizationProfile::getDimensions));
    expect("bytes of an extent", facts.wide_dimensions ? 8 : 4, static_cast<int>(sizeof(Dims{}.d[0])));
}

} // namespace

int main() {
    const stuckproof::Layout* layout = stuckproof::find_layout(stuckproof::Flavour::FLAVOUR, MAJOR, MINOR);
    if (layout == nullptr) {
        std::printf("layouts.h has no row for this version\n");
        return 1;
    }
    expect("buildSerializedNetwork", layout->build_serialized, slot(&apiv::VBuilder::buildSerializedNetwork));
    expect("buildEngineWithConfig", layout->build_engine, slot_of_buildEngineWithConfig<apiv::VBuilder>(0));
    expect("buildSerializedNetworkToStream", layout->build_to_stream,
           slot_of_buildSerializedNetworkToStream<apiv::VBuilder>(0));
    expect("buildSerializedNetworkWithKernelText", layout->build_kernel_text,
           slot_of_buildSerializedNetworkWithKernelText<apiv::VBuilder>(0));
    expect("setProgressMonitor", layout->set_monitor, slot(&apiv::VBuilderConfig::setProgressMonitor));
    expect("getProgressMonitor", layout->get_monitor, slot(&apiv::VBuilderConfig::getProgressMonitor));
    expect("phaseStart", layout->monitor_first, slot(&IProgressMonitor::phaseStart));
    expect("stepComplete", layout->monitor_first + 1, slot(&IProgressMonitor::stepComplete));
    expect("phaseFinish", layout->monitor_first + 2, slot(&IProgressMonitor::phaseFinish));
    expect("getInterfaceInfo", layout->monitor_versioned ? 1 : -1, slot(&IProgressMonitor::getInterfaceInfo));
    expect("ILogger::log", layout->log, slot(&ILogger::log));
    expect("VHostMemory::size", stuckproof::kHostMemorySize, slot(&apiv::VHostMemory::size));
    expect("an implementation behind a public object", 16, static_cast<int>(Memory::kPublicBytes));
    const stuckproof::FactLayout* facts = stuckproof::find_fact_layout(stuckproof::Flavour::FLAVOUR, MAJOR, MINOR);
    if (facts == nullptr) {
        std::printf("fact_layouts.h has no row for this version\n");
        return 1;
    }
    check_configuration(*facts);
    check_network(*facts);
    Monitor monitor;
    const InterfaceInfo info = monitor.getInterfaceInfo();
    expect("the monitor's interface major", 1, info.major);
    expect("the monitor's interface name", 0, std::strcmp(info.kind, "IProgressMonitor"));
    std::printf("%d checked, %d faults\n", g_checked, g_faults);
    return g_faults == 0 ? 0 : 1;
}
