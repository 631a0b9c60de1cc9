//! Builds the attach library (`cpp/`), which `src/attach` embeds.

use std::path::PathBuf;

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

fn main() {
    println!("cargo::rerun-if-changed=cpp");
    let target = std::env::var("TARGET").expect("cargo sets TARGET");
    assert!(
        target.starts_with("x86_64-") && target.contains("linux"),
        "stuckproof attaches to TensorRT builds on 64-bit x86 Linux only; {target} is not supported"
    );
    let out = PathBuf::from(std::env::var_os("OUT_DIR").expect("cargo sets OUT_DIR")).join("attach.so");
    let mut compile = cc::Build::new().cpp(true).get_compiler().to_command();
    compile.args(FLAGS).arg("-shared").arg("-o").arg(&out);
    compile.args(SOURCES.map(|name| format!("cpp/{name}.cpp")));
    compile.args(["-Wl,--version-script=cpp/attach.map", "-Wl,-z,now", "-Wl,-z,relro", "-Wl,-z,noexecstack"]);
    compile.args(["-Wl,-z,nodelete", "-Wl,--hash-style=both", "-Wl,--strip-debug"]);
    let status = compile.status().expect("a C++ compiler (g++) is needed to build the attach library");
    assert!(status.success(), "the attach library did not compile: {status}");
}
