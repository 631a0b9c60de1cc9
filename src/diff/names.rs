//! Names for `TensorRT`'s numbers. A number means the same in the versions that stand with its table and in no other:
//! flags were removed and those behind them counted anew.

/// Flags of a builder: `TensorRT` 11 and `TensorRT`-RTX from 1.5 on.
const FLAGS: [(u32, &str); 21] = [
    (2, "DEBUG"),
    (3, "GPU_FALLBACK"),
    (4, "REFIT"),
    (5, "DISABLE_TIMING_CACHE"),
    (6, "TF32"),
    (7, "SPARSE_WEIGHTS"),
    (8, "SAFETY_SCOPE"),
    (11, "DIRECT_IO"),
    (12, "VERSION_COMPATIBLE"),
    (13, "EXCLUDE_LEAN_RUNTIME"),
    (15, "ERROR_ON_TIMING_CACHE_MISS"),
    (17, "DISABLE_COMPILATION_CACHE"),
    (18, "STRIP_PLAN"),
    (19, "REFIT_IDENTICAL"),
    (20, "WEIGHT_STREAMING"),
    (22, "REFIT_INDIVIDUAL"),
    (23, "STRICT_NANS"),
    (24, "MONITOR_MEMORY"),
    (26, "EDITABLE_TIMING_CACHE"),
    (27, "DISTRIBUTIVE_INDEPENDENCE"),
    (28, "REQUIRE_USER_ALLOCATION"),
];

/// Kinds of layers, by their numbers, in the same versions.
const LAYERS: [&str; 57] = [
    "CONVOLUTION",
    "CAST",
    "ACTIVATION",
    "POOLING",
    "LRN",
    "SCALE",
    "SOFTMAX",
    "DECONVOLUTION",
    "CONCATENATION",
    "ELEMENTWISE",
    "PLUGIN",
    "UNARY",
    "PADDING",
    "SHUFFLE",
    "REDUCE",
    "TOPK",
    "GATHER",
    "MATRIX_MULTIPLY",
    "RAGGED_SOFTMAX",
    "CONSTANT",
    "IDENTITY",
    "PLUGIN_V2",
    "SLICE",
    "SHAPE",
    "PARAMETRIC_RELU",
    "RESIZE",
    "TRIP_LIMIT",
    "RECURRENCE",
    "ITERATOR",
    "LOOP_OUTPUT",
    "SELECT",
    "FILL",
    "QUANTIZE",
    "DEQUANTIZE",
    "CONDITION",
    "CONDITIONAL_INPUT",
    "CONDITIONAL_OUTPUT",
    "SCATTER",
    "EINSUM",
    "ASSERTION",
    "ONE_HOT",
    "NON_ZERO",
    "GRID_SAMPLE",
    "NMS",
    "REVERSE_SEQUENCE",
    "NORMALIZATION",
    "PLUGIN_V3",
    "SQUEEZE",
    "UNSQUEEZE",
    "CUMULATIVE",
    "DYNAMIC_QUANTIZE",
    "ATTENTION_INPUT",
    "ATTENTION_OUTPUT",
    "ROTARY_EMBEDDING",
    "KVCACHE_UPDATE",
    "MOE",
    "DIST_COLLECTIVE",
];

/// Types of tensors, which have kept their numbers.
const TYPES: [&str; 12] =
    ["FLOAT", "HALF", "INT8", "INT32", "BOOL", "UINT8", "FP8", "BF16", "INT64", "INT4", "FP4", "E8M0"];

/// Whether the tables hold for a library, given as people name it.
pub(super) fn hold(library: Option<&str>) -> bool {
    let numbers = |version: &str| {
        let mut parts = version.split('.').map(|part| part.parse::<u32>().ok());
        Some((parts.next()??, parts.next()??))
    };
    library.is_some_and(|library| match library.split_once(' ') {
        Some(("TensorRT", version)) => numbers(version).is_some_and(|version| version.0 == 11),
        Some(("TensorRT-RTX", version)) => {
            numbers(version).is_some_and(|(major, minor)| major == 1 && minor >= 5)
        }
        _ => false,
    })
}

/// The flags that are set, by name where one is known.
pub(super) fn flags(bits: i64, known: bool) -> Vec<String> {
    let set = (0..64).filter(|bit| bits >> bit & 1 == 1);
    let name = |bit: u32| {
        FLAGS.iter().find(|(number, _)| known && *number == bit).map(|(_, name)| (*name).to_owned())
    };
    set.map(|bit| name(bit).unwrap_or_else(|| format!("bit {bit}"))).collect()
}

/// A kind of layer.
pub(super) fn layer(number: &str, known: bool) -> String {
    let name = number.parse().ok().and_then(|number: usize| LAYERS.get(number)).filter(|_| known);
    name.map_or_else(|| format!("kind {number}"), |name| format!("{name} layers"))
}

/// A type of tensor.
pub(super) fn data_type(number: i64) -> String {
    let name = usize::try_from(number).ok().and_then(|number| TYPES.get(number));
    name.map_or_else(|| format!("type {number}"), ToString::to_string)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_given_only_where_they_hold() {
        for library in ["TensorRT 11.4.0.1", "TensorRT-RTX 1.7.1.116", "TensorRT-RTX 1.5.0"] {
            assert!(hold(Some(library)), "{library}");
        }
        for library in
            ["TensorRT 10.13.0", "TensorRT-RTX 1.4.0", "TensorRT-RTX 2.0", "TensorRT-RTX", "x 11.0"]
        {
            assert!(!hold(Some(library)), "{library}");
        }
        assert_eq!(flags(1 << 4 | 1 << 12, true), ["REFIT", "VERSION_COMPATIBLE"]);
        assert_eq!(flags(1 << 4 | 1 << 40, false), ["bit 4", "bit 40"]);
        assert_eq!(flags(i64::MIN | 1, true), ["bit 0", "bit 63"]);
        assert_eq!(
            (layer("17", true), layer("17", false)),
            ("MATRIX_MULTIPLY layers".into(), "kind 17".into())
        );
        assert_eq!(
            (layer("900", true), data_type(7), data_type(-1)),
            ("kind 900".into(), "BF16".into(), "type -1".into())
        );
    }
}
