//! A script, checked and written as the library and the player read it: `cpp/simulate/plan.h` has the same lines.

use super::act::Written;
use super::script::{
    Act, Build, Call, Flavour, Method, OnFalse, Returns, Save, Script, When, Write as FileWrite,
};
use super::{Options, SimulateError};
use std::fmt::Write;
use std::path::Path;

/// The first and the last version of each family that can be played: major, first minor, last minor.
const VERSIONS: [(Flavour, u32, u32, u32); 4] = [
    (Flavour::Tensorrt, 9, 1, 3),
    (Flavour::Tensorrt, 10, 0, 16),
    (Flavour::Tensorrt, 11, 0, 4),
    (Flavour::TensorrtRtx, 1, 3, 7),
];

/// The configuration's numbers that a script may set, by their names in the evidence.
const CONFIG: [&str; 18] = [
    "flags",
    "avgTimingIterations",
    "engineCapability",
    "profilingVerbosity",
    "tacticSources",
    "optimizationLevel",
    "hardwareCompatibility",
    "maxAuxStreams",
    "runtimePlatform",
    "maxTactics",
    "tilingLevel",
    "l2LimitForTiling",
    "quantizationFlags",
    "defaultDevice",
    "dlaCore",
    "poolWorkspace",
    "poolTacticDram",
    "poolTacticSharedMemory",
];

/// What to play, and with which library.
#[derive(Debug)]
pub struct Plan {
    /// The lines.
    pub text: String,
    /// The name by which the library is loaded.
    pub library: String,
    /// Whether the player calls it as a linked program does.
    pub linked: bool,
    /// Whether a Python interpreter seems to be in the process.
    pub python: bool,
}

impl Plan {
    /// Checks a script and puts it into lines.
    pub(super) fn of(script: &Script, options: &Options) -> Result<Self, SimulateError> {
        let version = version(script)?;
        let mut plan =
            Lines { text: String::new(), options, version, rtx: script.flavour == Flavour::TensorrtRtx };
        plan.job(script)?;
        for build in &script.builds {
            plan.build(build)?;
        }
        let library = match script.flavour {
            Flavour::Tensorrt => format!("libnvinfer.so.{}", version[0]),
            Flavour::TensorrtRtx => format!("libtensorrt_rtx.so.{}", version[0]),
        };
        let linked = script.call == Call::Linked;
        let python = script.language == super::script::Language::Python;
        Ok(Self { text: plan.text, library, linked, python })
    }
}

/// The four numbers of the version; what is missing is 0.
fn version(script: &Script) -> Result<[u32; 4], SimulateError> {
    let unknown = || SimulateError::Version { version: script.version.clone() };
    let mut numbers = [0; 4];
    let parts: Vec<&str> = script.version.split('.').collect();
    if parts.len() < 2 || parts.len() > numbers.len() {
        return Err(unknown());
    }
    for (number, part) in numbers.iter_mut().zip(parts) {
        *number = part.parse().ok().filter(|n| *n < 100_000).ok_or_else(unknown)?;
    }
    let [major, minor, ..] = numbers;
    let known = VERSIONS.iter().any(|&(flavour, of, first, last)| {
        flavour == script.flavour && of == major && (first..=last).contains(&minor)
    });
    if known { Ok(numbers) } else { Err(unknown()) }
}

struct Lines<'a> {
    text: String,
    options: &'a Options,
    version: [u32; 4],
    rtx: bool,
}

impl Lines<'_> {
    fn line(&mut self, line: std::fmt::Arguments) {
        // Text can always be written to.
        let _ = self.text.write_fmt(line);
        self.text.push('\n');
    }

    fn job(&mut self, script: &Script) -> Result<(), SimulateError> {
        let [major, minor, patch, number] = self.version;
        let rtx = u8::from(self.rtx);
        self.line(format_args!("library {rtx} {major} {minor} {patch} {number} {}", word(&script.device)?));
        let flags =
            [script.call == Call::Linked, script.at_once, script.ignore_sigterm, script.crash_at_exit];
        let [linked, at_once, deaf, crash] = flags.map(u8::from);
        let code = script.exit_code.map_or(-1, i32::from);
        self.line(format_args!("player {linked} {at_once} {deaf} {crash} {code}"));
        for (name, value) in &script.config {
            if !CONFIG.contains(&name.as_str()) {
                return Err(SimulateError::Config { name: name.clone(), known: CONFIG.join(", ") });
            }
            self.line(format_args!("config {name} {value}"));
        }
        for capability in &script.compute_capabilities {
            self.line(format_args!("capability {capability}"));
        }
        self.network(script)
    }

    fn network(&mut self, script: &Script) -> Result<(), SimulateError> {
        let inputs = script.network.inputs.iter().map(|tensor| ("input", tensor));
        for (what, tensor) in inputs.chain(script.network.outputs.iter().map(|tensor| ("output", tensor))) {
            let (name, kind, shape) = (word(&tensor.name)?, tensor.data_type, extents(&tensor.shape)?);
            self.line(format_args!("{what} {name} {kind} {shape}"));
        }
        for (kind, count) in &script.network.layers {
            let kind: u16 = kind.parse().map_err(|_| SimulateError::Layer { kind: kind.clone() })?;
            self.line(format_args!("layer {kind} {count}"));
        }
        for profile in &script.profiles {
            let [min, opt, max] = [&profile.min, &profile.opt, &profile.max].map(|shape| extents(shape));
            let (index, input) = (profile.index, word(&profile.input)?);
            self.line(format_args!("profile {index} {input} {} {} {}", min?, opt?, max?));
        }
        Ok(())
    }

    fn build(&mut self, build: &Build) -> Result<(), SimulateError> {
        let method = self.method(build.method)?;
        let on_false = match build.on_false {
            OnFalse::Stop => "stop",
            OnFalse::Ignore => "ignore",
            OnFalse::Engine => "engine",
        };
        let returns = u8::from(build.returns == Returns::Engine);
        self.line(format_args!("build {method} {on_false} {returns} {}", build.engine_bytes));
        if let Some(monitor) = &build.monitor {
            let at = |step: Option<u32>| step.map_or(-1, i64::from);
            self.line(format_args!("monitor {} {}", at(monitor.false_at), at(monitor.crash_at)));
        }
        if let Some(cache) = &build.timing_cache {
            let path = path(cache.path.as_deref(), self.options.timing_cache.as_deref(), "timing_cache")?;
            let save = match cache.save {
                Save::Success => "success",
                Save::Always => "always",
                Save::Never => "never",
            };
            self.line(format_args!("cache {} {save} {path}", u8::from(cache.ignore_mismatch)));
        }
        for write in &build.writes {
            self.file(write, build.method)?;
        }
        build.acts.iter().try_for_each(|act| self.act(act))
    }

    /// The word for a method, where the version has it.
    fn method(&self, method: Method) -> Result<&'static str, SimulateError> {
        let from = |major: u32, minor: u32| !self.rtx && (self.version[0], self.version[1]) >= (major, minor);
        let (name, known) = match method {
            Method::Serialized => ("serialized", true),
            Method::Engine => ("engine", !self.rtx && (self.version[0] == 9 || from(10, 6))),
            Method::Stream => ("stream", self.rtx || from(10, 13)),
            Method::KernelText => ("kernel_text", from(10, 13)),
        };
        if known { Ok(name) } else { Err(SimulateError::Method { method: name }) }
    }

    fn file(&mut self, write: &FileWrite, method: Method) -> Result<(), SimulateError> {
        let when = match write.when {
            When::Before => "before",
            When::After => "after",
            When::Always => "always",
        };
        if write.bytes.is_none() && method == Method::Engine {
            return Err(SimulateError::NoBytes);
        }
        let bytes = write.bytes.map_or("-1".to_owned(), |bytes| bytes.to_string());
        let path = path(write.path.as_deref(), self.options.engine.as_deref(), "engine")?;
        self.line(format_args!("write {when} {bytes} {} {path}", write.over.unwrap_or(0)));
        Ok(())
    }

    fn act(&mut self, act: &Act) -> Result<(), SimulateError> {
        let written = Written::of(act)?;
        let Written { kind, number, ns, open, name, parent } = written;
        let (name, parent) = (marked(name), marked(parent));
        let opens = act.acts.is_some();
        let verb = if opens { "open" } else { "act" };
        self.line(format_args!("{verb} {kind} {number} {ns} {} {name} {parent}", u8::from(open)));
        if let Some(inside) = &act.acts {
            inside.iter().try_for_each(|act| self.act(act))?;
            self.line(format_args!("end"));
        }
        Ok(())
    }
}

/// A path of the script, or else that of the command line.
fn path(own: Option<&Path>, given: Option<&Path>, option: &'static str) -> Result<String, SimulateError> {
    let path = own.or(given).ok_or(SimulateError::NoPath { option })?;
    word(path.to_str().ok_or_else(|| SimulateError::NotText { path: path.to_owned() })?)
}

fn extents(shape: &[i64]) -> Result<String, SimulateError> {
    if shape.len() > 8 {
        return Err(SimulateError::Shape { shape: shape.to_vec() });
    }
    Ok(shape.iter().fold(shape.len().to_string(), |line, extent| format!("{line} {extent}")))
}

/// A word of a line that must be there.
fn word(text: &str) -> Result<String, SimulateError> {
    if text.is_empty() { Err(SimulateError::Empty) } else { Ok(escaped(text)) }
}

/// A word that may be empty: a sign stands before it.
fn marked(text: &str) -> String {
    format!("={}", escaped(text))
}

fn escaped(text: &str) -> String {
    text.bytes().fold(String::new(), |mut word, byte| {
        if byte > b' ' && byte != b'%' && byte != 0x7F {
            word.push(char::from(byte));
        } else {
            let _ = write!(word, "%{byte:02X}");
        }
        word
    })
}
