//! JSON text that no reader stumbles over.
//!
//! JSON lets more characters stand as they are than its readers bear: U+2028, U+2029 and U+0085 end a line for many of
//! them, and a terminal obeys the control characters from U+007F to U+009F. All of these are escaped here, in what is
//! written by hand and in what serde writes.

/// What a byte of UTF-8 means for a JSON string.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Class {
    Plain,
    /// One byte that must be escaped.
    Escaped,
    /// The first byte of a character that may have to be escaped.
    Lead,
}

const CLASSES: [Class; 256] = {
    let mut classes = [Class::Plain; 256];
    let mut byte = 0;
    while byte < b' ' as usize {
        classes[byte] = Class::Escaped;
        byte += 1;
    }
    classes[b'"' as usize] = Class::Escaped;
    classes[b'\\' as usize] = Class::Escaped;
    classes[0x7f] = Class::Escaped;
    classes[0xc2] = Class::Lead;
    classes[0xe2] = Class::Lead;
    classes
};

/// Appends `text` as a JSON string with its quotes.
pub(super) fn string(text: &str, out: &mut Vec<u8>) {
    out.push(b'"');
    let mut rest = text.as_bytes();
    while let Some(at) = rest.iter().position(|&byte| CLASSES[usize::from(byte)] != Class::Plain) {
        out.extend_from_slice(&rest[..at]);
        rest = &rest[at..];
        let length = match unusual(rest) {
            Some((number, length)) => {
                numbered(number, out);
                length
            }
            None if CLASSES[usize::from(rest[0])] == Class::Lead => {
                out.push(rest[0]);
                1
            }
            None => {
                short(rest[0], out);
                1
            }
        };
        rest = &rest[length..];
    }
    out.extend_from_slice(rest);
    out.push(b'"');
}

/// Escapes in finished JSON what JSON itself would let stand. Such characters are found inside of strings only.
#[must_use]
pub fn plain(json: Vec<u8>) -> Vec<u8> {
    let suspect = |&byte: &u8| byte == 0x7f || CLASSES[usize::from(byte)] == Class::Lead;
    if !json.iter().any(suspect) {
        return json;
    }
    let mut out = Vec::with_capacity(json.len() + 64);
    let mut rest = &json[..];
    while let Some(at) = rest.iter().position(&suspect) {
        out.extend_from_slice(&rest[..at]);
        rest = &rest[at..];
        let length = if let Some((number, length)) = unusual(rest) {
            numbered(number, &mut out);
            length
        } else {
            out.push(rest[0]);
            1
        };
        rest = &rest[length..];
    }
    out.extend_from_slice(rest);
    out
}

/// The number and the bytes of the character that `utf8` starts with, where it is one that JSON lets stand and we do
/// not.
fn unusual(utf8: &[u8]) -> Option<(u16, usize)> {
    match utf8 {
        [0x7f, ..] => Some((0x7f, 1)),
        [0xc2, low @ 0x80..=0x9f, ..] => Some((u16::from(*low), 2)),
        [0xe2, 0x80, low @ 0xa8..=0xa9, ..] => Some((0x2000 | u16::from(*low & 0x3f), 3)),
        _ => None,
    }
}

/// Escapes one of the bytes that JSON itself wants escaped, as serde does.
fn short(byte: u8, out: &mut Vec<u8>) {
    let letter = match byte {
        b'"' | b'\\' => byte,
        0x08 => b'b',
        b'\t' => b't',
        b'\n' => b'n',
        0x0c => b'f',
        b'\r' => b'r',
        _ => return numbered(u16::from(byte), out),
    };
    out.extend_from_slice(&[b'\\', letter]);
}

fn numbered(number: u16, out: &mut Vec<u8>) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let digit = |shift: u16| DIGITS[usize::from(number >> shift & 15)];
    out.extend_from_slice(&[b'\\', b'u', digit(12), digit(8), digit(4), digit(0)]);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_character_reads_back_and_none_ends_a_line() {
        for c in (0..=0x3000).chain(0xfff0..0x1_0010).filter_map(char::from_u32) {
            let text = format!("a{c}b");
            let mut by_hand = Vec::new();
            string(&text, &mut by_hand);
            let by_serde = plain(serde_json::to_vec(&text).expect("text is JSON"));
            assert_eq!(by_hand, by_serde, "{:x}", u32::from(c));
            assert_eq!(serde_json::from_slice::<String>(&by_hand).expect("JSON"), text);
            let shown = String::from_utf8(by_hand).expect("UTF-8");
            assert!(
                !shown.contains(|c: char| c.is_control() || matches!(c, '\u{2028}' | '\u{2029}')),
                "{shown:?}"
            );
        }
    }
}
