//! Text that every XML parser takes, without credentials in addresses. The report's writer escapes what stands in the way of mark-up and nothing else;
//! builders colour their messages, and names are whatever somebody gave.

use crate::mask;

/// What stands in the place of a character that XML 1.0 does not know.
const STRANGE: char = '\u{fffd}';
/// The longest name or message, characters.
const LONGEST_LINE: usize = 500;
/// The longest text, characters.
const LONGEST_TEXT: usize = 20_000;

/// For an attribute: one line, since parsers turn breaks in attributes into spaces.
pub(super) fn line(text: &str) -> String {
    let clean = mask::addresses(&clean(text));
    let words: Vec<&str> = clean.split_whitespace().collect();
    cut(words.join(" "), LONGEST_LINE)
}

/// For the content of an element, which is written as CDATA: what ends one is split over two.
pub(super) fn content(text: &str) -> String {
    cut(mask::addresses(&clean(text)), LONGEST_TEXT).replace("]]>", "]]]]><![CDATA[>")
}

/// Without escape sequences, and with nothing that XML 1.0 forbids.
fn clean(text: &str) -> String {
    let mut clean = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\u{1b}' => match chars.next() {
                Some('[') => skip_control(&mut chars),
                Some(']' | 'P' | 'X' | '^' | '_') => skip_string(&mut chars),
                Some(_) | None => {}
            },
            '\u{9b}' => skip_control(&mut chars),
            '\r' if chars.peek() == Some(&'\n') => {}
            '\r' => clean.push('\n'),
            '\n' | '\t' => clean.push(c),
            c if c.is_control() || matches!(c, '\u{fffe}' | '\u{ffff}') => clean.push(STRANGE),
            c => clean.push(c),
        }
    }
    clean
}

/// A control sequence: parameters up to the letter that ends it. What is no part of one ends it too, and stays.
fn skip_control(chars: &mut std::iter::Peekable<std::str::Chars>) {
    while chars.next_if(|c| matches!(c, ' '..='?')).is_some() {}
    chars.next_if(|c| matches!(c, '@'..='~'));
}

/// A control string (a title, a link): up to its end, or to that of the line.
fn skip_string(chars: &mut std::iter::Peekable<std::str::Chars>) {
    while let Some(c) = chars.next_if(|c| *c != '\n') {
        match c {
            '\u{7}' | '\u{9c}' => return,
            '\u{1b}' => {
                chars.next_if_eq(&'\\');
                return;
            }
            _ => {}
        }
    }
}

fn cut(mut text: String, longest: usize) -> String {
    if let Some((end, _)) = text.char_indices().nth(longest) {
        text.truncate(end);
        text.push('…');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_and_titles_go_and_their_text_stays() {
        assert_eq!(line("\u{1b}[1;31mred\u{1b}[0m and \u{9b}32mgreen"), "red and green");
        assert_eq!(line("\u{1b}]0;title\u{7}text \u{1b}]8;;http://x\u{1b}\\link"), "text link");
        assert_eq!(line("\u{1b}]never ended\nnext \u{1b}"), "next");
    }

    #[test]
    fn what_xml_forbids_is_replaced() {
        assert_eq!(
            content("a\0b\u{b}c\u{fffe}d\u{ffff}e\u{85}f\tg"),
            "a\u{fffd}b\u{fffd}c\u{fffd}d\u{fffd}e\u{fffd}f\tg"
        );
        assert_eq!(content("one\r\ntwo\rthree"), "one\ntwo\nthree");
        assert_eq!(line(" one\r\n two\t"), "one two");
    }

    #[test]
    fn an_end_of_cdata_is_split_also_where_an_escape_sequence_hid_it() {
        assert_eq!(content("x]]>y"), "x]]]]><![CDATA[>y");
        assert_eq!(content("x]\u{1b}[0m]>y"), "x]]]]><![CDATA[>y");
    }

    #[test]
    fn an_address_keeps_no_password() {
        assert_eq!(line("from https://me:\u{1b}[0mpw@host/x"), "from https://(masked)@host/x");
        assert_eq!(content("https://me:pw@host/x"), "https://(masked)@host/x");
    }

    #[test]
    fn long_texts_are_cut_at_a_character() {
        assert_eq!(line(&"ä".repeat(LONGEST_LINE + 1)).chars().count(), LONGEST_LINE + 1);
        assert!(content(&"ä".repeat(LONGEST_TEXT + 1)).ends_with("ä…"));
    }
}
