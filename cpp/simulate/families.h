// The families of versions that share their virtual tables. Within one, a later version only has more at the end, so
// each is played with the tables of its last.
#pragma once

#include "plan.h"
#include "rtx_1_3.h"
#include "rtx_1_5.h"
#include "tensorrt_10.h"
#include "tensorrt_11.h"
#include "tensorrt_9.h"

namespace simulated {

#define FAMILY(NAME, NAMESPACE)                                  \
    struct NAME {                                                \
        using Dims = NAMESPACE::Dims;                            \
        using ProgressMonitor = NAMESPACE::ProgressMonitor;      \
        using Profile = NAMESPACE::VOptimizationProfile;         \
        using HostMemory = NAMESPACE::VHostMemory;               \
        using TimingCache = NAMESPACE::VTimingCache;             \
        using Tensor = NAMESPACE::VTensor;                       \
        using Layer = NAMESPACE::VLayer;                         \
        using NetworkDefinition = NAMESPACE::VNetworkDefinition; \
        using BuilderConfig = NAMESPACE::VBuilderConfig;         \
        using Builder = NAMESPACE::VBuilder;                     \
    }
FAMILY(Tensorrt9, tensorrt_9);
FAMILY(Tensorrt10, tensorrt_10);
FAMILY(Tensorrt11, tensorrt_11);
FAMILY(RtxBefore5, rtx_1_3);
FAMILY(Rtx, rtx_1_5);
#undef FAMILY

// Calls `what` with a family of the plan's version as its argument.
template <class What> auto with_family(const Plan& plan, What&& what) {
    if (plan.rtx) {
        return plan.version[1] < 5 ? what(RtxBefore5{}) : what(Rtx{});
    }
    switch (plan.version[0]) {
    case 9: return what(Tensorrt9{});
    case 10: return what(Tensorrt10{});
    default: return what(Tensorrt11{});
    }
}

} // namespace simulated
