//! A script made from a log: the same phases, steps and messages, with the same pauses in between.

use super::SimulateError;
use crate::clock::Mono;
use crate::event::{Event, EventKind, LibraryAttached, LogReader};
use std::fmt::Write;
use std::path::Path;

/// A script that plays the builds of a log, `speed` times as fast.
pub fn script_of(log: &Path, speed: f64) -> Result<String, SimulateError> {
    let failed = |why: String| SimulateError::Log { path: log.to_owned(), why };
    let mut reader = LogReader::open(log).map_err(|e| failed(e.to_string()))?;
    let mut heard = Heard { speed, library: None, builds: Vec::new() };
    while let Some(line) = reader.read().map_err(|e| failed(e.to_string()))? {
        heard.take(&line.event);
    }
    let library = heard.library.as_ref().ok_or_else(|| failed("no builder is in it".to_owned()))?;
    if heard.builds.is_empty() {
        return Err(failed("no build is in it".to_owned()));
    }
    Ok(heard.script(library))
}

/// What a log tells of its builds.
struct Heard {
    speed: f64,
    library: Option<LibraryAttached>,
    builds: Vec<Build>,
}

/// One build: its acts as lines of a script.
struct Build {
    number: u32,
    began: Mono,
    last: Mono,
    ended: Option<Mono>,
    method: &'static str,
    chained: bool,
    engine: Option<u64>,
    acts: String,
    /// The names of the phases, by instance: a step's parent and a phase's own are told by number.
    phases: Vec<(u64, String)>,
}

impl Heard {
    fn take(&mut self, event: &Event) {
        match &event.kind {
            EventKind::LibraryAttached(library) => {
                self.library.get_or_insert_with(|| library.clone());
            }
            EventKind::BuildStarted(started) => self.builds.push(Build {
                number: started.build,
                began: event.at,
                last: event.at,
                ended: None,
                method: method(&started.method),
                chained: started.chained,
                engine: None,
                acts: String::new(),
                phases: Vec::new(),
            }),
            EventKind::PhaseStarted(phase) => {
                let parent = self.name_of(phase.build, phase.parent).or(phase.unknown_parent.clone());
                let parent = parent.map_or(String::new(), |parent| format!(", parent = {}", quoted(&parent)));
                let (name, steps) = (quoted(&phase.name), phase.steps);
                self.act(
                    phase.build,
                    event.at,
                    &format!("phase = {name}, steps = {steps}, open = true{parent}"),
                );
                if let Some(build) = self.build(phase.build) {
                    build.phases.push((phase.phase, phase.name.clone()));
                }
            }
            EventKind::StepCompleted(step) => {
                let act = format!("step = {}, of = {}", step.step, quoted(&step.name));
                self.act(step.build, event.at, &act);
            }
            EventKind::PhaseFinished(phase) => {
                self.act(phase.build, event.at, &format!("finish = {}", quoted(&phase.name)));
            }
            EventKind::Message(message) => {
                let act =
                    format!("message = {}, severity = {}", quoted(&message.text), quoted(&message.severity));
                self.act(message.build.unwrap_or(0), event.at, &act);
            }
            EventKind::BuildReturned(returned) => {
                if let Some(build) = self.build(returned.build) {
                    build.ended = Some(event.at);
                    build.engine = returned.engine.then(|| returned.bytes.unwrap_or(64 << 10));
                }
            }
            _ => {}
        }
    }

    fn build(&mut self, number: u32) -> Option<&mut Build> {
        self.builds.iter_mut().find(|build| build.number == number)
    }

    fn name_of(&mut self, build: u32, phase: Option<u64>) -> Option<String> {
        let phase = phase?;
        let known = &self.build(build)?.phases;
        known.iter().find(|(instance, _)| *instance == phase).map(|(_, name)| name.clone())
    }

    /// Adds an act, after the silence before it.
    fn act(&mut self, number: u32, at: Mono, act: &str) {
        let speed = self.speed;
        if let Some(build) = self.build(number) {
            build.silence(at, speed);
            let _ = writeln!(build.acts, "    {{ {act} }},");
        }
    }

    fn script(&self, library: &LibraryAttached) -> String {
        let (flavour, version) = (quoted(&library.flavour), quoted(&library.version));
        let language = if library.python { "python" } else { "cpp" };
        let mut script = format!("flavour = {flavour}\nversion = {version}\nlanguage = \"{language}\"\n");
        if self.is_at_once() {
            script.push_str("at_once = true\n");
        }
        for build in &self.builds {
            build.write(&mut script, self.speed);
        }
        script
    }

    /// Whether two builds ran at one time.
    fn is_at_once(&self) -> bool {
        self.builds.windows(2).any(|pair| pair[0].ended.is_none_or(|ended| ended > pair[1].began))
    }
}

impl Build {
    fn silence(&mut self, until: Mono, speed: f64) {
        let ms = until.0.saturating_sub(self.last.0) as f64 / 1e6 / speed;
        self.last = until;
        // Below that a pause is the player's own overhead.
        if ms >= 0.05 {
            let _ = writeln!(self.acts, "    {{ silence = \"{ms:.3}ms\" }},");
        }
    }

    fn write(&self, script: &mut String, speed: f64) {
        let _ = writeln!(script, "\n[[build]]\nmethod = \"{}\"", self.method);
        match self.engine {
            Some(bytes) => {
                let _ = writeln!(script, "engine_bytes = \"{bytes}\"");
            }
            None => script.push_str("returns = \"nothing\"\n"),
        }
        if self.chained {
            script.push_str("monitor = {}\n");
        }
        let _ = writeln!(script, "do = [\n{}", self.acts.trim_end_matches('\n'));
        match self.ended {
            Some(ended) => {
                let ms = ended.0.saturating_sub(self.last.0) as f64 / 1e6 / speed;
                let _ = writeln!(script, "    {{ silence = \"{ms:.3}ms\" }},");
            }
            // The log does not say that it ever came to an end.
            None => script.push_str("    { fault = \"hang\" },\n"),
        }
        script.push_str("]\n");
    }
}

fn method(name: &str) -> &'static str {
    match name {
        "buildEngineWithConfig" => "engine",
        "buildSerializedNetworkToStream" => "stream",
        "buildSerializedNetworkWithKernelText" => "kernel_text",
        _ => "serialized",
    }
}

/// Text as TOML has it: what JSON escapes is escaped alike, and DEL besides.
fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string().replace('\u{7f}', "\\u007f")
}
