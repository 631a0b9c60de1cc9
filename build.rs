//! Builds the attach library (`cpp/`), which `src/attach` embeds, the simulated builder (`cpp/simulate/`), which
//! `src/simulate` does, and the program that combines timing caches (`cpp/cache/`).

use std::path::{Path, PathBuf};
use std::process::Command;

const SOURCES: [&str; 10] =
    ["recorder", "elf", "library", "vtable", "monitor", "logger", "facts", "builder", "entry", "memory"];

const FLAGS: [&str; 15] = [
    "-std=c++17",
    "-O2",
    "-fPIC",
    "-fvisibility=hidden",
    "-fno-exceptions",
    "-fno-rtti",
    "-fno-stack-protector",
    "-fno-threadsafe-statics",
    "-fcf-protection=full",
    "-fno-plt",
    "-U_FORTIFY_SOURCE",
    "-Wall",
    "-Wextra",
    "-Werror",
    "-nostdlib",
];

/// What the library and the player of the simulated builder have in common.
const SIMULATED: [&str; 4] = ["plan", "cache", "stage", "faults"];

/// Small, and with nothing that another machine may lack.
const SIMULATED_FLAGS: [&str; 12] = [
    "-std=c++17",
    "-Os",
    "-fPIC",
    "-fvisibility=hidden",
    "-fno-exceptions",
    "-ffunction-sections",
    "-static-libstdc++",
    "-static-libgcc",
    "-pthread",
    "-Wl,--gc-sections,--strip-all",
    "-Wall",
    "-Wextra",
];

fn main() {
    println!("cargo::rerun-if-changed=cpp");
    let target = std::env::var("TARGET").expect("cargo sets TARGET");
    assert!(
        target.starts_with("x86_64-") && target.contains("linux"),
        "stuckproof attaches to TensorRT builds on 64-bit x86 Linux only; {target} is not supported"
    );
    let out = PathBuf::from(std::env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    // A core for each: they take about as long.
    std::thread::scope(|scope| {
        scope.spawn(|| attach_library(&out.join("attach.so")));
        scope.spawn(|| cache_combiner(&out.join("combine")));
        scope.spawn(|| simulated_library(&out.join("simulated.so")));
        scope.spawn(|| simulated_player(&out.join("simulated-player")));
        scope.spawn(|| simulated_python(&out.join("simulated-python.so")));
    });
}

fn compiler() -> Command {
    cc::Build::new().cpp(true).get_compiler().to_command()
}

fn run(mut compile: Command, what: &str) {
    let status = compile.status().expect("a C++ compiler (g++) is needed to build stuckproof");
    assert!(status.success(), "{what} did not compile: {status}");
}

fn attach_library(out: &Path) {
    let mut compile = compiler();
    compile.args(FLAGS).arg("-shared").arg("-o").arg(out);
    compile.args(SOURCES.map(|name| format!("cpp/{name}.cpp")));
    compile.args(["-Wl,--version-script=cpp/attach.map", "-Wl,-z,now", "-Wl,-z,relro", "-Wl,-z,noexecstack"]);
    compile.args(["-Wl,-z,nodelete", "-Wl,--hash-style=both", "-Wl,--strip-debug"]);
    run(compile, "the attach library");
}

/// `src/combine.rs` embeds it.
fn cache_combiner(out: &Path) {
    let mut compile = compiler();
    compile.args([
        "-std=c++17",
        "-Os",
        "-static-libstdc++",
        "-static-libgcc",
        "-Wl,--strip-all",
        "-Wall",
        "-Wextra",
    ]);
    compile.arg("-o").arg(out).args(["cpp/cache/combine.cpp", "-ldl"]);
    run(compile, "the program that combines timing caches");
}

fn simulated_library(out: &Path) {
    let mut compile = compiler();
    compile.args(SIMULATED_FLAGS).arg("-shared").arg("-o").arg(out);
    compile.args(SIMULATED.map(|name| format!("cpp/simulate/{name}.cpp"))).arg("cpp/simulate/library.cpp");
    compile.arg("-Wl,--version-script=cpp/simulate/library.map");
    run(compile, "the simulated builder");
}

/// The function that makes builders is bound at its first call, when the library has been loaded.
fn simulated_player(out: &Path) {
    let mut compile = compiler();
    compile.args(SIMULATED_FLAGS).arg("-o").arg(out);
    compile.args(SIMULATED.map(|name| format!("cpp/simulate/{name}.cpp"))).arg("cpp/simulate/files.cpp");
    compile.arg("cpp/simulate/player.cpp");
    compile.args(["-Wl,-z,lazy", "-Wl,-z,dynamic-undefined-weak", "-ldl"]);
    run(compile, "the player of the simulated builder");
}

fn simulated_python(out: &Path) {
    let mut compile = compiler();
    compile
        .args(["-x", "c", "-fPIC", "-shared", "-Wl,--strip-all", "-o"])
        .arg(out)
        .arg("cpp/simulate/python.c");
    run(compile, "the stand-in of a Python interpreter");
}
