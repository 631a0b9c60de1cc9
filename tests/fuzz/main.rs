//! The fuzz targets with their seeds and with some thousand changes to these, on any toolchain, so that they never rot.
//! `scripts/fuzz` runs the same functions under libFuzzer.

mod targets;

use std::fs;
use std::path::PathBuf;
use targets::seeds::{self, Chance};
use targets::{ALL, Target};

/// Changes to the seeds of each target.
fn rounds() -> usize {
    std::env::var("STUCKPROOF_SOAK_ROUNDS")
        .ok()
        .and_then(|rounds| rounds.parse().ok())
        .map_or(400, |r: usize| r * 40)
}

fn target(name: &str) -> Target {
    ALL.into_iter().find(|(known, _)| *known == name).expect("it is a target").1
}

/// One or two small changes, some of them with a word of the dictionary.
fn changed(seed: &[u8], words: &[String], chance: &mut Chance) -> Vec<u8> {
    let mut bytes = seed.to_vec();
    for _ in 0..=chance.below(2) {
        let at = chance.below(bytes.len() + 1);
        let end = (at + chance.below(9)).min(bytes.len());
        match chance.below(5) {
            0 => bytes.truncate(at),
            1 => drop(bytes.drain(at..end)),
            2 => drop(bytes.splice(at..end, words[chance.below(words.len())].bytes())),
            3 => bytes.iter_mut().skip(at).take(1).for_each(|byte| *byte = chance.below(256) as u8),
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
    let seed = std::env::var("STUCKPROOF_SOAK_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(1);
    let mut chance = Chance(seed);
    for _ in 0..rounds() {
        let bytes = changed(&seeds[chance.below(seeds.len())], &words, &mut chance);
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
