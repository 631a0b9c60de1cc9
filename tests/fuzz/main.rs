//! The fuzz targets with their seeds and with some thousand changes to these, on any toolchain, so that they never rot.
//! `scripts/fuzz` runs the same functions under libFuzzer.

mod targets;

use std::fs;
use std::path::PathBuf;
use targets::chance::{Chance, setting};
use targets::seeds;
use targets::{ALL, Target};

fn target(name: &str) -> Target {
    ALL.into_iter().find(|(known, _)| *known == name).expect("it is a target").1
}

/// One or two small changes, some of them with a word of the dictionary.
fn changed(seed: &[u8], words: &[String], chance: &mut Chance) -> Vec<u8> {
    let mut bytes = seed.to_vec();
    for _ in 0..=chance.place(2) {
        let at = chance.place(bytes.len() + 1);
        let end = (at + chance.place(9)).min(bytes.len());
        match chance.place(5) {
            0 => bytes.truncate(at),
            1 => drop(bytes.drain(at..end)),
            2 => drop(bytes.splice(at..end, words[chance.place(words.len())].bytes())),
            3 => bytes.iter_mut().skip(at).take(1).for_each(|byte| *byte = chance.place(256) as u8),
            _ => drop(bytes.splice(at..at, bytes[at..end].to_vec().repeat(3))),
        }
    }
    bytes
}

fn smoke(name: &str) {
    let run = target(name);
    let seeds = seeds::of(name);
    for seed in &seeds {
        run(seed);
    }
    run(&[]);
    let words: Vec<String> = seeds::words().into_iter().collect();
    let mut chance = Chance(setting("STUCKPROOF_SOAK_SEED", 1));
    // Changes to the seeds.
    for _ in 0..40 * setting("STUCKPROOF_SOAK_ROUNDS", 10) {
        let bytes = changed(&seeds[chance.place(seeds.len())], &words, &mut chance);
        run(&bytes);
    }
}

/// Writes the seeds of every target and the dictionary to the folder that `STUCKPROOF_FUZZ_SEEDS` names, for
/// `scripts/fuzz`: `TARGET/NUMBER` and `words`.
#[test]
fn seeds_and_words() {
    let scratch = tempfile::tempdir().expect("a temporary folder");
    let folder = std::env::var_os("STUCKPROOF_FUZZ_SEEDS").map_or(scratch.path().to_owned(), PathBuf::from);
    for (name, _) in ALL {
        let own = folder.join(name);
        fs::create_dir_all(&own).expect("the folder can be made");
        let seeds = seeds::of(name);
        assert!(seeds.len() > 3, "{name} begins with something");
        for (number, seed) in seeds.iter().enumerate() {
            fs::write(own.join(number.to_string()), seed).expect("the folder can be written");
        }
    }
    let escaped = |word: String| word.replace('\\', "\\\\").replace('"', "\\\"");
    let words: Vec<String> =
        seeds::words().into_iter().map(|word| format!("\"{}\"\n", escaped(word))).collect();
    assert!(words.len() > 300);
    fs::write(folder.join("words"), words.concat()).expect("the folder can be written");
}

#[test]
fn archive() {
    smoke("archive");
}

#[test]
fn bundle() {
    smoke("bundle");
}

#[test]
fn control() {
    smoke("control");
}

#[test]
fn log() {
    smoke("log");
}

#[test]
fn wire() {
    smoke("wire");
}

/// A pipe in the place of any file is not waited for: 37 makes one.
#[test]
fn pipes_in_the_place_of_files() {
    for name in 0..8 {
        targets::bundle::run(&[name, 37, 0, 0, 0]);
    }
}
