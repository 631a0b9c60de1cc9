//! The tables that are played, against the official headers: every slot of every class.

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

fn repository() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Where the official headers lie: a package that is locked and downloaded, and never built.
fn headers() -> PathBuf {
    let output =
        Command::new(env!("CARGO")).args(["metadata", "--format-version=1", "--locked"]).output().unwrap();
    let metadata: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let packages = metadata["packages"].as_array().unwrap();
    let package = packages.iter().find(|p| p["name"] == "trtx-sys").expect("trtx-sys is locked");
    Path::new(package["manifest_path"].as_str().unwrap()).parent().unwrap().join("TensorRT-Headers")
}

/// The classes of a family's header with their methods in order.
fn methods(header: &str) -> Vec<(String, String)> {
    let mut class = String::new();
    let mut found = Vec::new();
    for line in header.lines() {
        if let Some(rest) = line.strip_prefix("struct ") {
            rest.split(' ').next().unwrap().clone_into(&mut class);
        }
        let name = match line.trim().strip_prefix("NOT_PLAYED(") {
            Some(rest) => rest.split(')').next(),
            None if line.trim().starts_with("virtual") && !line.contains('~') => {
                line.split('(').next().and_then(|before| before.rsplit([' ', '*']).next())
            }
            None => None,
        };
        found.extend(name.map(|name| (class.clone(), name.to_owned())));
    }
    found
}

/// A program that compares them; -1 stands for a method that the official headers lack.
fn program(family: &str, methods: &[(String, String)]) -> String {
    let mut text = format!(
        "#include <NvInfer.h>\n#include <NvInferImpl.h>\n#include <cstring>\n#include \"cpp/simulate/{family}.h\"\n\
         template <class M> int slot(M member) {{ long parts[2]; std::memcpy(parts, &member, sizeof(parts)); \
         return static_cast<int>((parts[0] - 1) / 8); }}\n"
    );
    let mut main = String::from("int main() {\n");
    for (class, name) in methods {
        let _ = writeln!(
            text,
            "template <class T> auto {class}_{name}(int) -> decltype(slot(&T::{name})) {{ return slot(&T::{name}); }}\n\
             template <class T> int {class}_{name}(...) {{ return -1; }}"
        );
        let _ = writeln!(
            main,
            "std::printf(\"{class}::{name} %d %d\\n\", slot(&simulated::{family}::{class}::{name}), \
             {class}_{name}<nvinfer1::apiv::{class}>(0));"
        );
    }
    // What the application implements: the library calls it by slot as well.
    for (ours, official, name) in [
        ("VersionedMonitor", "IProgressMonitor", "phaseStart"),
        ("VersionedMonitor", "IProgressMonitor", "stepComplete"),
        ("VersionedMonitor", "IProgressMonitor", "phaseFinish"),
        ("VersionedMonitor", "IProgressMonitor", "getInterfaceInfo"),
        ("StreamWriter", "IStreamWriter", "write"),
    ] {
        let _ = writeln!(
            main,
            "std::printf(\"{official}::{name} %d %d\\n\", slot(&simulated::{ours}::{name}), slot(&nvinfer1::{official}::{name}));"
        );
    }
    main.push_str(
        "std::printf(\"ILogger::log %d %d\\n\", VERSIONED_LOGGER ? slot(&simulated::VersionedLogger::log) : \
         slot(&simulated::PlainLogger::log), slot(&nvinfer1::ILogger::log));\n\
         std::printf(\"bytes %d %d\\n\", int(sizeof(simulated::Object)), int(sizeof(nvinfer1::IHostMemory)));\n}\n",
    );
    text + &main
}

fn compare(set: &str, family: &str, versioned_logger: bool, may_lack: usize) {
    let headers = headers();
    let header = std::fs::read_to_string(repository().join(format!("cpp/simulate/{family}.h"))).unwrap();
    let methods = methods(&header);
    assert!(methods.len() > 150, "{family}: {} methods", methods.len());
    let folder = tempfile::tempdir().unwrap();
    let source = folder.path().join("compare.cpp");
    std::fs::write(&source, program(family, &methods)).unwrap();
    let compare = folder.path().join("compare");
    let output = Command::new("g++")
        .args(["-std=c++17", "-isystem"])
        .arg(&headers)
        .arg("-isystem")
        .arg(headers.join(set))
        .arg("-I")
        .arg(repository())
        .arg(format!("-DVERSIONED_LOGGER={versioned_logger}"))
        .arg(&source)
        .arg("-o")
        .arg(&compare)
        .output()
        .expect("g++ runs");
    assert!(output.status.success(), "{set}: {}", String::from_utf8_lossy(&output.stderr));
    let said = String::from_utf8(Command::new(&compare).output().unwrap().stdout).unwrap();
    assert_eq!(said.lines().count(), methods.len() + 7);
    let lines = said.lines().map(|line| line.split(' ').collect::<Vec<_>>());
    let (lacking, faults): (Vec<_>, Vec<_>) =
        lines.filter(|line| line[1] != line[2]).partition(|line| line[2] == "-1");
    assert!(faults.is_empty(), "{set}: {faults:?}");
    // An older version of a family has less at the ends of its tables.
    assert!(
        lacking.len() <= may_lack,
        "{set}: {} methods are not in the headers: {lacking:?}",
        lacking.len()
    );
}

#[test]
fn the_tables_of_tensorrt_11_are_the_official_ones() {
    compare("TRT-Enterprise-11.4", "tensorrt_11", true, 0);
}

#[test]
fn the_tables_of_tensorrt_rtx_are_the_official_ones() {
    compare("TRT-RTX-1.3", "rtx_1_3", false, 4);
    compare("TRT-RTX-1.4", "rtx_1_3", false, 0);
    compare("TRT-RTX-1.5", "rtx_1_5", true, 4);
    compare("TRT-RTX-1.6", "rtx_1_5", true, 1);
    compare("TRT-RTX-1.7", "rtx_1_5", true, 0);
}
