//! Stuckproof wraps a `TensorRT` engine build and leaves evidence that a release gate can trust.
//!
//! The modules are layers; a lower one never uses a higher one (`tests/layers.rs` reads the `use` lines and holds
//! it). From the bottom:
//!
//! | level | modules |
//! |---|---|
//! | 0 | [`exit`], [`clock`], [`fsio`], [`mask`], [`procfs`], [`shown`], [`units`] |
//! | 1 | [`digest`], [`event`], [`sign`], [`junit`] |
//! | 2 | [`wire`], [`cancel`], [`attach`], [`verdict`], [`baseline`], [`input`], [`artifact`], [`resources`], [`stall`], [`history`], [`combine`] |
//! | 3 | [`observe`], [`supervise`], [`simulate`] |
//! | 4 | [`evidence`], [`attempts`], [`seal`], [`archive`], [`resume`] |
//! | 5 | [`diff`], [`render`], [`verify`], [`pack`], [`review`], [`explain`] |
//! | 7 | [`cli`] |

pub mod archive;
pub mod artifact;
pub mod attach;
pub mod attempts;
pub mod baseline;
pub mod cancel;
pub mod cli;
pub mod clock;
pub mod combine;
pub mod diff;
pub mod digest;
pub mod event;
pub mod evidence;
pub mod exit;
pub mod explain;
pub mod fsio;
pub mod history;
pub mod input;
pub mod junit;
pub mod mask;
pub mod observe;
pub mod pack;
pub mod procfs;
pub mod render;
pub mod resources;
pub mod resume;
pub mod review;
pub mod seal;
pub mod shown;
pub mod sign;
pub mod simulate;
pub mod stall;
pub mod supervise;
pub mod units;
pub mod verdict;
pub mod verify;
pub mod wire;
