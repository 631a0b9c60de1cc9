#include "facts.h"

#include "fact_layouts.h"
#include "object.h"
#include "system.h"
#include "text.h"
#include "vtable.h"

namespace stuckproof {

namespace {

constexpr std::int32_t kMaxTensors = 64;
constexpr std::int32_t kMaxProfiles = 16;
constexpr std::int32_t kMaxLayers = 1 << 20;
constexpr std::int32_t kLayerKinds = 128;
constexpr std::size_t kProfileTable = 4096;

// Pairs of text, each ended by a NUL. Too large for a thread's stack.
using Pairs = Text<wire::kMaxText>;

// A profile that was added to a configuration. Overwritten when a configuration at the same address gets one anew.
struct Added {
    void* config;
    std::int32_t index;
    void* profile;
};
Added g_added[kProfileTable] = {};

Added* added_slot(void* config, std::int32_t index) {
    const auto mixed = (reinterpret_cast<std::uintptr_t>(config) >> 4U) * 0x9E3779B97F4A7C15ULL;
    return &g_added[((mixed >> 40U) + static_cast<std::uint32_t>(index)) % kProfileTable];
}

std::int32_t add_profile(void* config, void* profile) {
    const VtableCopy* copy = copy_behind(config);
    const auto* library = static_cast<const Library*>(copy->context);
    const std::uint8_t slot = library->facts->add_profile;
    const auto index =
        reinterpret_cast<std::int32_t (*)(void*, void*)>(const_cast<void*>(copy->original[slot]))(config, profile);
    if (index >= 0) {
        Added* place = added_slot(config, index);
        __atomic_store_n(&place->profile, static_cast<void*>(nullptr), __ATOMIC_RELAXED);
        __atomic_store_n(&place->config, config, __ATOMIC_RELAXED);
        __atomic_store_n(&place->index, index, __ATOMIC_RELAXED);
        __atomic_store_n(&place->profile, profile, __ATOMIC_RELEASE);
    }
    return index;
}

void* added_profile(void* config, std::int32_t index) {
    Added* place = added_slot(config, index);
    void* profile = __atomic_load_n(&place->profile, __ATOMIC_ACQUIRE);
    const bool right = __atomic_load_n(&place->config, __ATOMIC_RELAXED) == config &&
                       __atomic_load_n(&place->index, __ATOMIC_RELAXED) == index;
    return right ? profile : nullptr;
}

void add_signed(Pairs& pairs, std::int64_t value) {
    if (value < 0) {
        pairs.add("-");
    }
    pairs.add_number(value < 0 ? 0 - static_cast<std::uint64_t>(value) : static_cast<std::uint64_t>(value));
}

void add_pair(Pairs& pairs, const char* key, std::int64_t value) {
    pairs.add(key).end();
    add_signed(pairs, value);
    pairs.end();
}

// Extents as TensorRT returns them: 32 bits wide up to 9.x, 64 from 10.0 on.
template <class Extent> struct Dimensions {
    std::int32_t count;
    Extent extents[8];
};

template <class Extent> void add_dimensions(Pairs& pairs, const Dimensions<Extent>& dimensions) {
    for (std::int32_t i = 0; i < dimensions.count && i < 8; ++i) {
        pairs.add(i == 0 ? "" : "x");
        add_signed(pairs, dimensions.extents[i]);
    }
}

template <class Extent> void add_tensor_shape(Pairs& pairs, void* tensor) {
    add_dimensions(pairs, method<Dimensions<Extent> (*)(void*)>(tensor, kTensorDimensions)(tensor));
}

template <class Extent> void add_profile_shape(Pairs& pairs, void* profile, const char* input, std::int32_t which) {
    using Get = Dimensions<Extent> (*)(void*, const char*, std::int32_t);
    add_dimensions(pairs, method<Get>(profile, kProfileDimensions)(profile, input, which));
}

class Asking {
  public:
    Asking(const FactLayout* layout, Pairs& pairs, void* network, void* config)
        : layout_(layout), pairs_(pairs), network_(network), config_(config) {}

    void configuration() {
        for (unsigned fact = 0; fact < kConfigFactCount; ++fact) {
            const std::uint8_t slot = layout_->config[fact];
            if (slot == kNone) {
                continue;
            }
            const std::int64_t value = fact == kWideFact ? method<std::int64_t (*)(void*)>(config_, slot)(config_)
                                                         : method<std::int32_t (*)(void*)>(config_, slot)(config_);
            add_pair(pairs_, kConfigFacts[fact], value);
        }
        pools();
        capabilities();
        if (layout_->timing_cache != kNone) {
            const void* cache = method<void* (*)(void*)>(config_, layout_->timing_cache)(config_);
            add_pair(pairs_, "timingCacheAttached", cache != nullptr ? 1 : 0);
        }
    }

    void network() {
        const NetworkSlots& slots = layout_->network;
        const std::int32_t layers = count(slots.layer_count);
        add_pair(pairs_, "networkFlags", method<std::uint32_t (*)(void*)>(network_, slots.flags)(network_));
        add_pair(pairs_, "layers", layers);
        kinds(layers);
        tensors("input", count(slots.input_count), slots.input);
        tensors("output", count(slots.output_count), slots.output);
    }

    void profiles() {
        const std::int32_t all = method<std::int32_t (*)(void*)>(config_, layout_->config[3])(config_);
        for (std::int32_t index = 0; index < all && index < kMaxProfiles; ++index) {
            void* profile = added_profile(config_, index);
            if (profile != nullptr) {
                one_profile(index, implementation(profile));
            }
        }
    }

  private:
    std::int32_t count(std::uint8_t slot) { return method<std::int32_t (*)(void*)>(network_, slot)(network_); }

    // The pools that exist on every platform: workspace, tactic DRAM, tactic shared memory.
    void pools() {
        constexpr std::int32_t kPools[] = {0, 4, 5};
        constexpr const char* kNames[] = {"poolWorkspace", "poolTacticDram", "poolTacticSharedMemory"};
        for (int i = 0; i < 3; ++i) {
            using Get = std::uint64_t (*)(void*, std::int32_t);
            const std::uint64_t bytes = method<Get>(config_, layout_->memory_pool)(config_, kPools[i]);
            add_pair(pairs_, kNames[i], static_cast<std::int64_t>(bytes));
        }
    }

    void capabilities() {
        if (layout_->compute_capability == kNone) {
            return;
        }
        const std::uint8_t counting = layout_->config[13];
        const std::int32_t all = method<std::int32_t (*)(void*)>(config_, counting)(config_);
        for (std::int32_t i = 0; i < all && i < kMaxProfiles; ++i) {
            using Get = std::int32_t (*)(void*, std::int32_t);
            add_pair(pairs_, "computeCapability", method<Get>(config_, layout_->compute_capability)(config_, i));
        }
    }

    void kinds(std::int32_t layers) {
        std::uint32_t counts[kLayerKinds] = {};
        for (std::int32_t i = 0; i < layers && i < kMaxLayers; ++i) {
            void* layer = method<void* (*)(void*, std::int32_t)>(network_, layout_->network.layer)(network_, i);
            void* impl = layer == nullptr ? nullptr : implementation(layer);
            const std::int32_t kind = impl == nullptr ? -1 : method<std::int32_t (*)(void*)>(impl, kLayerType)(impl);
            if (kind >= 0 && kind < kLayerKinds) {
                ++counts[kind];
            }
        }
        for (std::int32_t kind = 0; kind < kLayerKinds; ++kind) {
            if (counts[kind] != 0) {
                pairs_.add("layerKind").end().add_number(static_cast<std::uint64_t>(kind)).add(":");
                pairs_.add_number(counts[kind]).end();
            }
        }
    }

    void tensors(const char* key, std::int32_t all, std::uint8_t slot) {
        for (std::int32_t i = 0; i < all && i < kMaxTensors; ++i) {
            void* impl = tensor(slot, i);
            if (impl == nullptr) {
                continue;
            }
            pairs_.add(key).end().add_number(
                static_cast<std::uint32_t>(method<std::int32_t (*)(void*)>(impl, layout_->tensor_type)(impl)));
            pairs_.add(" ");
            layout_->wide_dimensions ? add_tensor_shape<std::int64_t>(pairs_, impl)
                                     : add_tensor_shape<std::int32_t>(pairs_, impl);
            pairs_.add(" ").add(name(impl)).end();
        }
        if (all > kMaxTensors) {
            add_pair(pairs_, "notTold", all - kMaxTensors);
        }
    }

    void one_profile(std::int32_t index, void* profile) {
        const std::int32_t inputs = count(layout_->network.input_count);
        for (std::int32_t i = 0; i < inputs && i < kMaxTensors; ++i) {
            void* impl = tensor(layout_->network.input, i);
            if (impl == nullptr) {
                continue;
            }
            pairs_.add("profile").end().add_number(static_cast<std::uint64_t>(index));
            for (std::int32_t which = 0; which < 3; ++which) { // minimum, optimum, maximum
                pairs_.add(" ");
                layout_->wide_dimensions ? add_profile_shape<std::int64_t>(pairs_, profile, name(impl), which)
                                         : add_profile_shape<std::int32_t>(pairs_, profile, name(impl), which);
            }
            pairs_.add(" ").add(name(impl)).end();
        }
    }

    void* tensor(std::uint8_t slot, std::int32_t index) {
        void* tensor = method<void* (*)(void*, std::int32_t)>(network_, slot)(network_, index);
        return tensor == nullptr ? nullptr : implementation(tensor);
    }

    static const char* name(void* tensor) {
        const char* text = method<const char* (*)(void*)>(tensor, kTensorName)(tensor);
        return text == nullptr ? "" : text;
    }

    const FactLayout* layout_;
    Pairs& pairs_;
    void* network_;
    void* config_;
};

} // namespace

void record_facts(Recorder* recorder, Library* library, std::uint32_t build, void* network, void* config) {
    const FactLayout* layout = library->facts;
    if (layout == nullptr || network == nullptr || implementation(network) == nullptr ||
        !is_library_code(&table_of(implementation(network))[layout->network.flags], library)) {
        return;
    }
    auto* pairs = static_cast<Pairs*>(sys::anonymous(sizeof(Pairs)));
    if (pairs == nullptr) {
        return;
    }
    Asking asking(layout, *pairs, implementation(network), implementation(config));
    asking.configuration();
    asking.network();
    asking.profiles();
    Fields fields;
    fields.build = build;
    record_text(recorder, wire::Kind::build_facts, sys::now(), fields, pairs->data(), pairs->size());
    sys::unmap(pairs, sizeof(Pairs));
}

void observe_config(Library* library, void* config) {
    const FactLayout* layout = library->facts;
    if (layout == nullptr || config == nullptr || implementation(config) == nullptr) {
        return;
    }
    void* impl = implementation(config);
    if (is_copy(table_of(impl))) {
        return;
    }
    const Replacement replacement = {layout->add_profile, reinterpret_cast<const void*>(add_profile)};
    const VtableCopy* copy =
        copy_of(table_of(impl), layout->add_profile + 1U, is_library_code, library, &replacement, 1, library);
    if (copy != nullptr) {
        __atomic_store_n(static_cast<const void* const**>(impl), &copy->table[0], __ATOMIC_RELEASE);
    }
}

} // namespace stuckproof
