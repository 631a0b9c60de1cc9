// Which slots tell what a builder is about to build: its configuration, its network and its profiles.
//
// Read from the same sources as layouts.h, and checked with it. A slot that a version lacks is kNone. getTimingCache is
// kNone for TensorRT-RTX, where asking for it makes the library look for a GPU, and getHardwareCompatibilityLevel is,
// where asking puts a warning into the log of the user.
#pragma once

#include "layouts.h"

#include <cstdint>

namespace stuckproof {

// Getters of VBuilderConfig that answer with a number, in the order of FactLayout::config.
constexpr const char* kConfigFacts[] = {
    "flags",
    "avgTimingIterations",
    "engineCapability",
    "optimizationProfiles",
    "profilingVerbosity",
    "tacticSources",
    "optimizationLevel",
    "hardwareCompatibility",
    "maxAuxStreams",
    "runtimePlatform",
    "maxTactics",
    "tilingLevel",
    "l2LimitForTiling",
    "computeCapabilities",
    "quantizationFlags",
    "defaultDevice",
    "dlaCore",
};
constexpr unsigned kConfigFactCount = sizeof(kConfigFacts) / sizeof(kConfigFacts[0]);
constexpr unsigned kWideFact = 12; // l2LimitForTiling is 64 bits wide, the others 32

struct NetworkSlots {
    std::uint8_t layer_count;
    std::uint8_t layer;
    std::uint8_t input_count;
    std::uint8_t input;
    std::uint8_t output_count;
    std::uint8_t output;
    std::uint8_t flags;
};

struct FactLayout {
    Flavour flavour;
    std::uint8_t major;
    std::uint8_t first_minor; // both inclusive
    std::uint8_t last_minor;
    std::uint8_t create_config; // VBuilder::createBuilderConfig
    std::uint8_t config[kConfigFactCount];
    std::uint8_t memory_pool;
    std::uint8_t timing_cache;
    std::uint8_t compute_capability;
    std::uint8_t add_profile;
    NetworkSlots network;
    std::uint8_t tensor_type;
    bool wide_dimensions; // extents of 64 bits, from 10.0 on
};

// The same in every version: VTensor::getName and getDimensions, VLayer::getType, VOptimizationProfile::getDimensions.
constexpr std::uint8_t kTensorName = 3;
constexpr std::uint8_t kTensorDimensions = 5;
constexpr std::uint8_t kLayerType = 2;
constexpr std::uint8_t kProfileDimensions = 3;

constexpr FactLayout kFactLayouts[] = {
    {Flavour::tensorrt,
     9,
     1,
     3,
     9,
     {13, 5, 7, 30, 32, 43, 52, 54, 59, kNone, kNone, kNone, kNone, kNone, 38, 25, 23},
     48,
     46,
     kNone,
     29,
     {17, 18, 19, 20, 21, 22, 70},
     7,
     false},
    {Flavour::tensorrt,
     10,
     0,
     1,
     7,
     {9, 3, 5, 26, 28, 39, 48, 50, 55, kNone, kNone, kNone, kNone, kNone, 34, 21, 19},
     44,
     42,
     kNone,
     25,
     {12, 13, 14, 15, 16, 17, 64},
     7,
     true},
    {Flavour::tensorrt,
     10,
     2,
     5,
     7,
     {9, 3, 5, 26, 28, 39, 48, 50, 55, 59, kNone, kNone, kNone, kNone, 34, 21, 19},
     44,
     42,
     kNone,
     25,
     {12, 13, 14, 15, 16, 17, 64},
     7,
     true},
    {Flavour::tensorrt,
     10,
     6,
     8,
     7,
     {9, 3, 5, 26, 28, 39, 48, 50, 55, 59, 61, kNone, kNone, kNone, 34, 21, 19},
     44,
     42,
     kNone,
     25,
     {12, 13, 14, 15, 16, 17, 64},
     7,
     true},
    {Flavour::tensorrt,
     10,
     9,
     16,
     7,
     {9, 3, 5, 26, 28, 39, 48, 50, 55, 59, 61, 63, 65, kNone, 34, 21, 19},
     44,
     42,
     kNone,
     25,
     {12, 13, 14, 15, 16, 17, 64},
     7,
     true},
    {Flavour::tensorrt,
     11,
     0,
     4,
     5,
     {7, 3, 5, 24, 26, 28, 37, 39, 44, 48, 50, 52, 54, kNone, kNone, 19, 17},
     33,
     31,
     kNone,
     23,
     {12, 13, 14, 15, 16, 17, 61},
     6,
     true},
    {Flavour::rtx,
     1,
     3,
     4,
     7,
     {7, 3, 5, 24, 26, 28, 37, kNone, 44, 48, 50, 52, 54, 56, kNone, 19, 17},
     33,
     kNone,
     58,
     23,
     {12, 13, 14, 15, 16, 17, 60},
     7,
     true},
    {Flavour::rtx,
     1,
     5,
     7,
     5,
     {7, 3, 5, 24, 26, 28, 37, kNone, 44, 48, 50, 52, 54, 56, kNone, 19, 17},
     33,
     kNone,
     58,
     23,
     {12, 13, 14, 15, 16, 17, 59},
     6,
     true},
};

inline const FactLayout* find_fact_layout(Flavour flavour, int major, int minor) {
    return find_row(kFactLayouts, flavour, major, minor);
}

} // namespace stuckproof
