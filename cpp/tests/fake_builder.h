// A stand-in for a builder library, for the sanitizers: raw objects with the shape of TensorRT-RTX 1.7, whose build
// calls back from several threads. It proves the attach library's memory and thread safety, not the layouts.
#pragma once

#include <cstdint>

struct FakeConfig;

extern "C" {
// How many threads of its own each build calls back from, and how many callbacks each makes.
void fake_configure(int threads, int steps);
void* createInferBuilder_INTERNAL(void* logger, std::int32_t version);
void* fake_config();
void fake_destroy(void* object);
// Calls the builder's buildSerializedNetwork through its virtual table, as an application does.
void* fake_build(void* builder, void* config);
}
