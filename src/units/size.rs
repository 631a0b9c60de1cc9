//! Sizes as people write them.

/// Reads `0`, `65536`, `64MiB`, `1G`; the units are powers of 1024, and a bare number is bytes.
pub fn parse(text: &str) -> Result<u64, String> {
    let wrong = || format!("{text:?} is no size; write for example 0, 65536, 512KiB, 64MiB or 1GiB");
    let text = text.trim();
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let number: u64 = text[..digits].parse().map_err(|_| wrong())?;
    let shift = match text[digits..].trim() {
        "" | "B" => 0,
        "K" | "KiB" => 10,
        "M" | "MiB" => 20,
        "G" | "GiB" => 30,
        _ => return Err(wrong()),
    };
    number.checked_mul(1 << shift).ok_or_else(wrong)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_people_write_is_understood() {
        assert_eq!(parse("0"), Ok(0));
        assert_eq!(parse("64MiB"), Ok(64 << 20));
        assert_eq!(parse("512 K"), Ok(512 << 10));
        assert_eq!(parse("17"), Ok(17));
    }

    #[test]
    fn anything_else_is_refused_with_an_example() {
        for text in ["", "MiB", "1.5G", "-1", "1T", "99999999999GiB"] {
            assert!(parse(text).unwrap_err().contains("64MiB"), "{text}");
        }
    }
}
