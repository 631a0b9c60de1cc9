// The interfaces behind the objects of TensorRT 9, in the order of their virtual tables: read from public headers once;
// there are none here to compare with.
#pragma once

#include "shapes.h"

namespace simulated::tensorrt_9 {

using Dims = Dimensions<std::int32_t>;
using ProgressMonitor = PlainMonitor;

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
};

struct VTensor {
    virtual ~VTensor() = default;
    NOT_PLAYED(setName)
    virtual const char* getName() const = 0;
    NOT_PLAYED(setDimensions)
    virtual Dims getDimensions() const = 0;
    NOT_PLAYED(setType)
    virtual std::int32_t getType() const = 0;
    NOT_PLAYED(setDynamicRange)
    NOT_PLAYED(isNetworkInput)
    NOT_PLAYED(isNetworkOutput)
    NOT_PLAYED(setBroadcastAcrossBatch)
    NOT_PLAYED(getBroadcastAcrossBatch)
    NOT_PLAYED(getLocation)
    NOT_PLAYED(setLocation)
    NOT_PLAYED(dynamicRangeIsSet)
    NOT_PLAYED(resetDynamicRange)
    NOT_PLAYED(getDynamicRangeMin)
    NOT_PLAYED(getDynamicRangeMax)
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
    NOT_PLAYED(setPrecision)
    NOT_PLAYED(getPrecision)
    NOT_PLAYED(precisionIsSet)
    NOT_PLAYED(resetPrecision)
    NOT_PLAYED(setOutputType)
    NOT_PLAYED(getOutputType)
    NOT_PLAYED(outputTypeIsSet)
    NOT_PLAYED(resetOutputType)
    NOT_PLAYED(setMetadata)
    NOT_PLAYED(getMetadata)
};

struct VNetworkDefinition {
    virtual ~VNetworkDefinition() = default;
    NOT_PLAYED(addInput)
    NOT_PLAYED(markOutput)
    NOT_PLAYED(addConvolution)
    NOT_PLAYED(addFullyConnected)
    NOT_PLAYED(addActivation)
    NOT_PLAYED(addPooling)
    NOT_PLAYED(addLRN)
    NOT_PLAYED(addScale)
    NOT_PLAYED(addSoftMax)
    NOT_PLAYED(addConcatenation)
    NOT_PLAYED(addDeconvolution)
    NOT_PLAYED(addElementWise)
    NOT_PLAYED(addUnary)
    NOT_PLAYED(addPadding)
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
    NOT_PLAYED(addRNNv2)
    NOT_PLAYED(addIdentity)
    NOT_PLAYED(removeTensor)
    NOT_PLAYED(unmarkOutput)
    NOT_PLAYED(addPluginV2)
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
    NOT_PLAYED(hasExplicitPrecision)
    NOT_PLAYED(addLoop)
    NOT_PLAYED(addSelect)
    NOT_PLAYED(addFill)
    NOT_PLAYED(addPaddingNd)
    NOT_PLAYED(setWeightsName)
    NOT_PLAYED(setErrorRecorder)
    NOT_PLAYED(getErrorRecorder)
    NOT_PLAYED(addDequantize)
    NOT_PLAYED(addQuantize)
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
    NOT_PLAYED(usingStronglyTyped)
    NOT_PLAYED(addQuantizeV2)
    NOT_PLAYED(addDequantizeV2)
    NOT_PLAYED(addFillV2)
};

struct VBuilderConfig {
    virtual ~VBuilderConfig() = default;
    NOT_PLAYED(setMinTimingIterations)
    NOT_PLAYED(getMinTimingIterations)
    NOT_PLAYED(setAvgTimingIterations)
    virtual std::int32_t getAvgTimingIterations() const = 0;
    NOT_PLAYED(setEngineCapability)
    virtual std::int32_t getEngineCapability() const = 0;
    NOT_PLAYED(setInt8Calibrator)
    NOT_PLAYED(getInt8Calibrator)
    NOT_PLAYED(setMaxWorkspaceSize)
    NOT_PLAYED(getMaxWorkspaceSize)
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
    NOT_PLAYED(setAlgorithmSelector)
    NOT_PLAYED(getAlgorithmSelector)
    NOT_PLAYED(setCalibrationProfile)
    NOT_PLAYED(getCalibrationProfile)
    NOT_PLAYED(setQuantizationFlags)
    virtual std::int32_t getQuantizationFlags() const = 0;
    NOT_PLAYED(clearQuantizationFlag)
    NOT_PLAYED(setQuantizationFlag)
    NOT_PLAYED(getQuantizationFlag)
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
};

struct VBuilder {
    virtual ~VBuilder() = default;
    NOT_PLAYED(setMaxBatchSize)
    NOT_PLAYED(getMaxBatchSize)
    NOT_PLAYED(platformHasFastFp16)
    NOT_PLAYED(platformHasFastInt8)
    NOT_PLAYED(getMaxDLABatchSize)
    NOT_PLAYED(getNbDLACores)
    NOT_PLAYED(setGpuAllocator)
    virtual Object* createBuilderConfig() = 0;
    virtual Object* buildEngineWithConfig(Object& network, Object& config) = 0;
    virtual Object* createNetworkV2(std::uint32_t flags) = 0;
    virtual Object* createOptimizationProfile() = 0;
    NOT_PLAYED(setErrorRecorder)
    NOT_PLAYED(getErrorRecorder)
    NOT_PLAYED(reset)
    NOT_PLAYED(platformHasTf32)
    virtual Object* buildSerializedNetwork(Object& network, Object& config) = 0;
    NOT_PLAYED(isNetworkSupported)
    NOT_PLAYED(getLogger)
    NOT_PLAYED(setMaxThreads)
    NOT_PLAYED(getMaxThreads)
    NOT_PLAYED(getPluginRegistry)
};

} // namespace simulated::tensorrt_9
