// TensorRT's public objects: thin ones, with a virtual table pointer and then the implementation.
#pragma once

#include <cstdint>

namespace stuckproof {

inline void* implementation(void* object) { return static_cast<void**>(object)[1]; }

inline const void* const* table_of(void* implementation) {
    return *static_cast<const void* const* const*>(implementation);
}

template <class Function> Function method(void* implementation, std::uint8_t slot) {
    return reinterpret_cast<Function>(const_cast<void*>(table_of(implementation)[slot]));
}

} // namespace stuckproof
