// Which virtual-table slot holds which method, by library and version.
//
// TensorRT's public classes are thin: an IBuilder holds a pointer to an implementation object whose virtual table is
// the real interface (VBuilder, VBuilderConfig, VHostMemory in the headers). Slots count from the table's address
// point; the two destructors are slots 0 and 1. The numbers were read from the official headers of each version by
// compiling a pointer to each member; cpp/tests/layouts_check.cpp does so again for every header set that can be had.
#pragma once

#include <cstdint>

namespace stuckproof {

enum class Flavour : std::uint8_t { tensorrt, rtx };

constexpr std::uint8_t kNone = 0xFF;

struct Layout {
    Flavour flavour;
    std::uint8_t major;
    std::uint8_t first_minor; // both inclusive
    std::uint8_t last_minor;
    // VBuilder
    std::uint8_t build_serialized;
    std::uint8_t build_engine;
    std::uint8_t build_to_stream;
    std::uint8_t build_kernel_text;
    std::uint8_t builder_slots; // at least so many slots a real table has
    // VBuilderConfig
    std::uint8_t set_monitor;
    std::uint8_t get_monitor;
    // IProgressMonitor: phaseStart, stepComplete, phaseFinish from here on. A versioned interface has getAPILanguage
    // and getInterfaceInfo before its destructors.
    std::uint8_t monitor_first;
    bool monitor_versioned;
    // ILogger::log; kNone where the logger's layout is not known for certain, and then messages are not recorded.
    std::uint8_t log;
    bool proven; // on this version's real library; else by headers alone
};

// VHostMemory::size is the same in every version.
constexpr std::uint8_t kHostMemorySize = 3;

constexpr Layout kLayouts[] = {
    // flavour        major minors  ser eng str ker slots  set get  mon versioned log proven
    {Flavour::tensorrt, 9, 1, 3, 17, 10, kNone, kNone, 23, 60, 61, 2, false, 0, false},
    {Flavour::tensorrt, 10, 0, 5, 14, kNone, kNone, kNone, 20, 56, 57, 4, true, 0, false},
    {Flavour::tensorrt, 10, 6, 12, 14, 20, kNone, kNone, 21, 56, 57, 4, true, 0, false},
    {Flavour::tensorrt, 10, 13, 16, 14, 20, 21, 22, 23, 56, 57, 4, true, 0, false},
    {Flavour::tensorrt, 11, 0, 3, 11, 17, 18, 19, 20, 45, 46, 4, true, kNone, false},
    {Flavour::tensorrt, 11, 4, 4, 11, 17, 18, 19, 20, 45, 46, 4, true, 4, false},
    {Flavour::rtx, 1, 3, 4, 14, kNone, 20, kNone, 21, 45, 46, 4, true, 0, false},
    {Flavour::rtx, 1, 5, 6, 11, kNone, 17, kNone, 18, 45, 46, 4, true, 4, false},
    {Flavour::rtx, 1, 7, 7, 11, kNone, 17, kNone, 18, 45, 46, 4, true, 4, true},
};

// The row of a table for a library and version, or null.
template <class Row, unsigned kRows>
const Row* find_row(const Row (&rows)[kRows], Flavour flavour, int major, int minor) {
    for (const Row& row : rows) {
        if (row.flavour == flavour && row.major == major && row.first_minor <= minor && minor <= row.last_minor) {
            return &row;
        }
    }
    return nullptr;
}

inline const Layout* find_layout(Flavour flavour, int major, int minor) {
    return find_row(kLayouts, flavour, major, minor);
}

} // namespace stuckproof
