// The interfaces behind the objects of TensorRT 11, in the order of their virtual tables: compared with the official
// headers slot by slot (tests/simulate).
#pragma once

#include "shapes.h"

namespace simulated::tensorrt_11 {

using Dims = Dimensions<std::int64_t>;
using ProgressMonitor = VersionedMonitor;

struct VOptimizationProfile {
    virtual ~VOptimizationProfile() = default;
    virtual bool setDimensions(const char* input, std::int32_t which, const Dims& dimensions) = 0;
    virtual Dims getDimensions(const char* input, std::int32_t which) const = 0;
};

struct VHostMemory {
    virtual ~VHostMemory() = default;
    virtual void* data() const = 0;
    virtual std::size_t size() const = 0;
    virtual std::int32_t type() const = 0;
};

struct VTimingCache {
    virtual ~VTimingCache() = default;
    virtual Object* serialize() const = 0;
    virtual bool combine(const Object& other, bool ignore_mismatch) = 0;
    virtual bool reset() = 0;
    NOT_PLAYED(queryKeys)
    NOT_PLAYED(query)
    NOT_PLAYED(update)
};

struct VTensor {
    virtual ~VTensor() = default;
    NOT_PLAYED(setName)
    virtual const char* getName() const = 0;
    NOT_PLAYED(setDimensions)
    virtual Dims getDimensions() const = 0;
    virtual std::int32_t getType() const = 0;
    NOT_PLAYED(isNetworkInput)
    NOT_PLAYED(isNetworkOutput)
    NOT_PLAYED(setBroadcastAcrossBatch)
    NOT_PLAYED(getBroadcastAcrossBatch)
    NOT_PLAYED(getLocation)
    NOT_PLAYED(setLocation)
    NOT_PLAYED(setAllowedFormats)
    NOT_PLAYED(getAllowedFormats)
    NOT_PLAYED(isShapeTensor)
    NOT_PLAYED(isExecutionTensor)
    NOT_PLAYED(setDimensionName)
    NOT_PLAYED(getDimensionName)
};

struct VLayer {
    virtual ~VLayer() = default;
    virtual std::int32_t getType() const = 0;
    NOT_PLAYED(setName)
    NOT_PLAYED(getName)
    NOT_PLAYED(getNbInputs)
    NOT_PLAYED(getInput)
    NOT_PLAYED(getNbOutputs)
    NOT_PLAYED(getOutput)
    NOT_PLAYED(setInput)
    NOT_PLAYED(getOutputType)
    NOT_PLAYED(setMetadata)
    NOT_PLAYED(getMetadata)
    NOT_PLAYED(setNbRanks)
    NOT_PLAYED(getNbRanks)
};

struct VNetworkDefinition {
    virtual ~VNetworkDefinition() = default;
    NOT_PLAYED(addInput)
    NOT_PLAYED(markOutput)
    NOT_PLAYED(addActivation)
    NOT_PLAYED(addLRN)
    NOT_PLAYED(addScale)
    NOT_PLAYED(addSoftMax)
    NOT_PLAYED(addConcatenation)
    NOT_PLAYED(addElementWise)
    NOT_PLAYED(addUnary)
    NOT_PLAYED(addShuffle)
    virtual std::int32_t getNbLayers() const = 0;
    virtual Object* getLayer(std::int32_t index) const = 0;
    virtual std::int32_t getNbInputs() const = 0;
    virtual Object* getInput(std::int32_t index) const = 0;
    virtual std::int32_t getNbOutputs() const = 0;
    virtual Object* getOutput(std::int32_t index) const = 0;
    NOT_PLAYED(addReduce)
    NOT_PLAYED(addTopK)
    NOT_PLAYED(addGather)
    NOT_PLAYED(addRaggedSoftMax)
    NOT_PLAYED(addMatrixMultiply)
    NOT_PLAYED(addConstant)
    NOT_PLAYED(addIdentity)
    NOT_PLAYED(removeTensor)
    NOT_PLAYED(unmarkOutput)
    NOT_PLAYED(addPluginV2)
    NOT_PLAYED(addPluginV3)
    NOT_PLAYED(addSlice)
    NOT_PLAYED(setName)
    NOT_PLAYED(getName)
    NOT_PLAYED(addShape)
    NOT_PLAYED(hasImplicitBatchDimension)
    NOT_PLAYED(markOutputForShapes)
    NOT_PLAYED(unmarkOutputForShapes)
    NOT_PLAYED(addParametricReLU)
    NOT_PLAYED(addConvolutionNd)
    NOT_PLAYED(addPoolingNd)
    NOT_PLAYED(addDeconvolutionNd)
    NOT_PLAYED(addScaleNd)
    NOT_PLAYED(addResize)
    NOT_PLAYED(addLoop)
    NOT_PLAYED(addSelect)
    NOT_PLAYED(addPaddingNd)
    NOT_PLAYED(setWeightsName)
    NOT_PLAYED(setErrorRecorder)
    NOT_PLAYED(getErrorRecorder)
    NOT_PLAYED(addGatherV2)
    NOT_PLAYED(addIfConditional)
    NOT_PLAYED(addScatter)
    NOT_PLAYED(addEinsum)
    NOT_PLAYED(addAssertion)
    NOT_PLAYED(addOneHot)
    NOT_PLAYED(addNonZero)
    NOT_PLAYED(addGridSample)
    NOT_PLAYED(addNMS)
    NOT_PLAYED(addReverseSequence)
    NOT_PLAYED(addNormalization)
    NOT_PLAYED(addCast)
    NOT_PLAYED(getBuilder)
    virtual std::uint32_t getFlags() const = 0;
    NOT_PLAYED(getFlag)
    NOT_PLAYED(addQuantizeV2)
    NOT_PLAYED(addDequantizeV2)
    NOT_PLAYED(addFillV2)
    NOT_PLAYED(markDebug)
    NOT_PLAYED(unmarkDebug)
    NOT_PLAYED(isDebugTensor)
    NOT_PLAYED(markWeightsRefittable)
    NOT_PLAYED(unmarkWeightsRefittable)
    NOT_PLAYED(areWeightsMarkedRefittable)
    NOT_PLAYED(addSqueeze)
    NOT_PLAYED(addUnsqueeze)
    NOT_PLAYED(addDynamicQuantize)
    NOT_PLAYED(addCumulative)
    NOT_PLAYED(markUnfusedTensorsAsDebugTensors)
    NOT_PLAYED(unmarkUnfusedTensorsAsDebugTensors)
    NOT_PLAYED(addTopKV2)
    NOT_PLAYED(addNonZeroV2)
    NOT_PLAYED(addNMSV2)
    NOT_PLAYED(addAttention)
    NOT_PLAYED(addRotaryEmbedding)
    NOT_PLAYED(addDynamicQuantizeV2)
    NOT_PLAYED(addKVCacheUpdate)
    NOT_PLAYED(addNormalizationV2)
    NOT_PLAYED(addMoE)
    NOT_PLAYED(addDistCollective)
    NOT_PLAYED(addAttentionV2)
    NOT_PLAYED(addSqueezeV2)
};

struct VBuilderConfig {
    virtual ~VBuilderConfig() = default;
    NOT_PLAYED(setAvgTimingIterations)
    virtual std::int32_t getAvgTimingIterations() const = 0;
    NOT_PLAYED(setEngineCapability)
    virtual std::int32_t getEngineCapability() const = 0;
    NOT_PLAYED(setFlags)
    virtual std::int32_t getFlags() const = 0;
    NOT_PLAYED(clearFlag)
    NOT_PLAYED(setFlag)
    NOT_PLAYED(getFlag)
    NOT_PLAYED(setDeviceType)
    NOT_PLAYED(getDeviceType)
    NOT_PLAYED(isDeviceTypeSet)
    NOT_PLAYED(resetDeviceType)
    NOT_PLAYED(canRunOnDLA)
    NOT_PLAYED(setDLACore)
    virtual std::int32_t getDLACore() const = 0;
    NOT_PLAYED(setDefaultDeviceType)
    virtual std::int32_t getDefaultDeviceType() const = 0;
    NOT_PLAYED(reset)
    NOT_PLAYED(setProfileStream)
    NOT_PLAYED(getProfileStream)
    virtual std::int32_t addOptimizationProfile(const Object* profile) = 0;
    virtual std::int32_t getNbOptimizationProfiles() const = 0;
    NOT_PLAYED(setProfilingVerbosity)
    virtual std::int32_t getProfilingVerbosity() const = 0;
    NOT_PLAYED(setTacticSources)
    virtual std::int32_t getTacticSources() const = 0;
    virtual Object* createTimingCache(const void* blob, std::size_t bytes) const = 0;
    virtual bool setTimingCache(const Object& cache, bool ignore_mismatch) = 0;
    virtual const Object* getTimingCache() const = 0;
    NOT_PLAYED(setMemoryPoolLimit)
    virtual std::size_t getMemoryPoolLimit(std::int32_t pool) const = 0;
    NOT_PLAYED(setPreviewFeature)
    NOT_PLAYED(getPreviewFeature)
    NOT_PLAYED(setBuilderOptimizationLevel)
    virtual std::int32_t getBuilderOptimizationLevel() const = 0;
    NOT_PLAYED(setHardwareCompatibilityLevel)
    virtual std::int32_t getHardwareCompatibilityLevel() const = 0;
    NOT_PLAYED(setPluginsToSerialize)
    NOT_PLAYED(getPluginToSerialize)
    NOT_PLAYED(getNbPluginsToSerialize)
    NOT_PLAYED(setMaxAuxStreams)
    virtual std::int32_t getMaxAuxStreams() const = 0;
    virtual void setProgressMonitor(ProgressMonitor* monitor) = 0;
    virtual ProgressMonitor* getProgressMonitor() const = 0;
    NOT_PLAYED(setRuntimePlatform)
    virtual std::int32_t getRuntimePlatform() const = 0;
    NOT_PLAYED(setMaxNbTactics)
    virtual std::int32_t getMaxNbTactics() const = 0;
    NOT_PLAYED(setTilingOptimizationLevel)
    virtual std::int32_t getTilingOptimizationLevel() const = 0;
    NOT_PLAYED(setL2LimitForTiling)
    virtual std::int64_t getL2LimitForTiling() const = 0;
    NOT_PLAYED(setRemoteAutoTuningConfig)
    NOT_PLAYED(getRemoteAutoTuningConfig)
    NOT_PLAYED(setBuildRoute)
    NOT_PLAYED(getBuildRoute)
    NOT_PLAYED(getAllBuildRoutes)
};

struct VBuilder {
    virtual ~VBuilder() = default;
    NOT_PLAYED(getMaxDLABatchSize)
    NOT_PLAYED(getNbDLACores)
    NOT_PLAYED(setGpuAllocator)
    virtual Object* createBuilderConfig() = 0;
    virtual Object* createNetworkV2(std::uint32_t flags) = 0;
    virtual Object* createOptimizationProfile() = 0;
    NOT_PLAYED(setErrorRecorder)
    NOT_PLAYED(getErrorRecorder)
    NOT_PLAYED(reset)
    virtual Object* buildSerializedNetwork(Object& network, Object& config) = 0;
    NOT_PLAYED(isNetworkSupported)
    NOT_PLAYED(getLogger)
    NOT_PLAYED(setMaxThreads)
    NOT_PLAYED(getMaxThreads)
    NOT_PLAYED(getPluginRegistry)
    virtual Object* buildEngineWithConfig(Object& network, Object& config) = 0;
    virtual bool buildSerializedNetworkToStream(Object& network, Object& config, StreamWriter& writer) = 0;
    virtual Object* buildSerializedNetworkWithKernelText(Object& network, Object& config, Object*& text) = 0;
};

} // namespace simulated::tensorrt_11
