//! The variables that can change what a builder does. All others stay out of the bundle.

use crate::mask;
use std::collections::BTreeMap;
use std::ffi::OsString;

/// Beginnings of the names that are kept.
const KEPT: [&str; 15] = [
    "CUDA",
    "CUDNN_",
    "CUBLAS",
    "NVIDIA_",
    "NCCL_",
    "TENSORRT",
    "TRT",
    "POLYGRAPHY_",
    "TORCH_TENSORRT",
    "ORT_TENSORRT",
    "OMP_",
    "MKL_",
    "OPENBLAS_",
    "LD_LIBRARY_PATH",
    "LD_PRELOAD",
];
/// Values are cut here, bytes.
const LONGEST: usize = 4096;

pub(super) fn read() -> BTreeMap<String, String> {
    kept(std::env::vars_os())
}

fn kept(all: impl IntoIterator<Item = (OsString, OsString)>) -> BTreeMap<String, String> {
    let text = |(name, value): (OsString, OsString)| {
        (name.to_string_lossy().into_owned(), value.to_string_lossy().into_owned())
    };
    let wanted = |(name, _): &(String, String)| KEPT.iter().any(|beginning| name.starts_with(beginning));
    let safe = |(name, value): (String, String)| {
        let value = cut(mask::value(&name, &value));
        (name, value)
    };
    all.into_iter().map(text).filter(wanted).map(safe).collect()
}

fn cut(mut value: String) -> String {
    if value.len() > LONGEST {
        value.truncate(value.floor_char_boundary(LONGEST));
        value.push('…');
    }
    value
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_a_builder_may_see_is_kept_and_secrets_are_masked() {
        let all = [
            ("CUDA_VISIBLE_DEVICES", "1"),
            ("NVIDIA_API_KEY", "nvapi-planted"),
            ("TRT_MIRROR", "https://me:planted@host/x"),
            ("HOME", "/home/planted"),
            ("AWS_SECRET_ACCESS_KEY", "planted"),
            ("LD_LIBRARY_PATH", ""),
        ];
        let kept = kept(all.map(|(name, value)| (name.into(), value.into())));
        assert_eq!(kept.len(), 4);
        assert_eq!(kept["CUDA_VISIBLE_DEVICES"], "1");
        assert_eq!(kept["LD_LIBRARY_PATH"], "", "an empty value is a value");
        assert!(!format!("{kept:?}").contains("planted"), "{kept:?}");
    }

    #[test]
    fn a_long_value_is_cut_at_a_character() {
        let long = cut("ä".repeat(LONGEST));
        assert!(long.len() < LONGEST + 8 && long.ends_with('…'));
    }
}
