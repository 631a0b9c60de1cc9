//! Names and texts as they may come, honest and hostile.

use proptest::prelude::*;

/// So many cases by default; `PROPTEST_CASES` asks for another number, as the soak does.
pub fn cases(usual: u32) -> ProptestConfig {
    match std::env::var_os("PROPTEST_CASES") {
        Some(_) => ProptestConfig::default(),
        None => ProptestConfig::with_cases(usual),
    }
}

/// What somebody might call a phase to break a log, a tree or a terminal.
pub const HOSTILE: [&str; 14] = [
    "",
    " ",
    "quote \" backslash \\ slash /",
    "newline\nreturn\rtab\tnull\0",
    "\u{1b}[2J\u{1b}[31mred\u{1b}]0;title\u{7}",
    "c1 \u{9b}31m \u{85} \u{90}",
    "line \u{2028} paragraph \u{2029} end",
    "bidi \u{202e}txet\u{202c} \u{2066}x\u{2069} \u{200f}",
    "zero\u{200b}width\u{feff}",
    "Überphase 阶段 фаза 🚀 e\u{301}",
    "\u{7f}\u{8}\u{c}\u{b}\u{1}\u{1f}",
    "{\"seq\":1}",
    "\u{fffd}\u{10ffff}\u{e000}",
    "../../etc/passwd; $(reboot) `x` %s %n",
];

/// Any text: hostile ones, random characters of every plane, a very long one now and then.
pub fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => proptest::sample::select(&HOSTILE[..]).prop_map(str::to_owned),
        4 => proptest::collection::vec(any::<char>(), 0..40).prop_map(String::from_iter),
        2 => "[A-Z][a-z]{2,9}( [a-z]{2,9}){0,3}",
        1 => (any::<char>(), 1_000_usize..4_000).prop_map(|(c, times)| std::iter::repeat_n(c, times).collect()),
    ]
}
