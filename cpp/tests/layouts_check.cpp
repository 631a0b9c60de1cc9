// Compares cpp/layouts.h with the official headers it is compiled against: -DFLAVOUR=rtx|tensorrt -DMAJOR=n -DMINOR=n.
//
// In the Itanium C++ ABI a pointer to a virtual member function is one plus its offset in the table, and a virtual
// table can be read from an object: both say which slot a method has, without any library.
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
        std::printf("%s: layouts.h says slot %d, the headers say %d\n", what, in_table, in_headers);
    }
}

// The slot of a method that a version may lack: kNone where it does.
#define OPTIONAL_SLOT(NAME)                                                                            \
    template <class T> auto slot_of_##NAME(int) -> decltype(slot(&T::NAME)) { return slot(&T::NAME); } \
    template <class T> int slot_of_##NAME(...) { return stuckproof::kNone; }
OPTIONAL_SLOT(buildEngineWithConfig)
OPTIONAL_SLOT(buildSerializedNetworkToStream)
OPTIONAL_SLOT(buildSerializedNetworkWithKernelText)

struct Monitor : IProgressMonitor {
    void phaseStart(char const*, char const*, std::int32_t) noexcept override {}
    bool stepComplete(char const*, std::int32_t) noexcept override { return true; }
    void phaseFinish(char const*) noexcept override {}
};

// A thin public object is a virtual table pointer and then the implementation.
struct Memory : IHostMemory {
    static constexpr std::size_t kPublicBytes = sizeof(IHostMemory);
};

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
    Monitor monitor;
    const InterfaceInfo info = monitor.getInterfaceInfo();
    expect("the monitor's interface major", 1, info.major);
    expect("the monitor's interface name", 0, std::strcmp(info.kind, "IProgressMonitor"));
    std::printf("%d checked, %d faults\n", g_checked, g_faults);
    return g_faults == 0 ? 0 : 1;
}
