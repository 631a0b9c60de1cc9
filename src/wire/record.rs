//! What the attach library tells, decoded.

use crate::clock::Mono;
use crate::event::BuildFacts;
use std::sync::Arc;

/// One process that wrote to the wire. The pid alone does not identify it: pids are reused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ProcessKey {
    /// The process id, as the process itself saw it.
    pub pid: u32,
    /// When it opened its first segment.
    pub registered: Mono,
}

/// One record, in the order in which its process reserved it.
#[derive(Debug, Clone, PartialEq)]
pub struct Record {
    /// The process that wrote it.
    pub process: ProcessKey,
    /// When the callback came, or the call was made.
    pub at: Mono,
    /// The build within the process, counted from 1; 0 where no build was running.
    pub build: u32,
    /// The thread that called.
    pub tid: u32,
    /// What happened.
    pub body: Body,
}

/// What happened.
#[derive(Debug, Clone, PartialEq)]
pub enum Body {
    /// A builder library was met and its builder could be observed.
    Library(LibraryFacts),
    /// A builder was created but left alone; the build runs unobserved.
    Refused {
        /// Why, in words for a person.
        reason: String,
    },
    /// A build method was entered.
    BuildStart {
        /// Which one.
        method: Method,
        /// Whether the application had set a monitor of its own, which is chained.
        chained: bool,
    },
    /// What the build is about to build.
    BuildFacts(Box<BuildFacts>),
    /// `phaseStart`.
    PhaseStart {
        /// The phase's name; names repeat, the name identifies nothing.
        name: Arc<str>,
        /// The parent's name, if one was given.
        parent: Option<Arc<str>>,
        /// The announced number of steps; `TensorRT` does not always report them all.
        steps: i32,
    },
    /// `stepComplete`.
    Step {
        /// The phase's name.
        name: Arc<str>,
        /// The step.
        step: i32,
        /// The number of the request that was answered with false, or 0 when the answer was true.
        answered: u32,
    },
    /// `phaseFinish`.
    PhaseFinish {
        /// The phase's name.
        name: Arc<str>,
    },
    /// The application's own monitor returned false from `stepComplete`.
    ApplicationFalse {
        /// The phase's name.
        name: Arc<str>,
        /// The step.
        step: i32,
    },
    /// A build method returned.
    BuildReturn {
        /// Whether it returned an engine (a non-null pointer, or true from a build to a stream).
        engine: bool,
        /// The engine's size in bytes, where the method returns the serialised engine itself.
        bytes: Option<u64>,
        /// Messages of each severity since the build started: internal error, error, warning, info, verbose.
        messages: [u32; 5],
    },
    /// A message to the application's logger. Info and verbose ones are counted only, never told one by one.
    Message {
        /// Its severity.
        severity: Severity,
        /// Its text.
        text: String,
        /// Whether the text was cut.
        truncated: bool,
    },
}

/// What is known of a builder library in a process.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LibraryFacts {
    /// `tensorrt` or `tensorrt-rtx`.
    pub flavour: String,
    /// As the library itself says it, for example `1.7.1.116`.
    pub version: String,
    /// The file that the process mapped.
    pub path: String,
    /// Whether a Python interpreter is in the process.
    pub python: bool,
    /// Why the messages of this library are not recorded; empty when they are.
    pub messages_unobserved: String,
    /// Whether the slot table was proven on this version's real library, or only on headers (`headers`).
    pub proven: String,
    /// Whether it is the simulated builder.
    pub simulated: bool,
}

/// The method that builds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Method {
    /// `buildSerializedNetwork`
    SerializedNetwork,
    /// `buildEngineWithConfig`
    EngineWithConfig,
    /// `buildSerializedNetworkToStream`
    ToStream,
    /// `buildSerializedNetworkWithKernelText`
    WithKernelText,
}

/// `ILogger::Severity`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// `kINTERNAL_ERROR`
    InternalError,
    /// `kERROR`
    Error,
    /// `kWARNING`
    Warning,
    /// `kINFO`
    Info,
    /// `kVERBOSE`
    Verbose,
}
