//! Spans of time as people write them.

use std::time::Duration;

/// Reads `90`, `1.5s`, `250ms`, `10m`, `1h30m`; a bare number is seconds.
pub fn parse(text: &str) -> Result<Duration, String> {
    let wrong = || format!("{text:?} is no span of time; write for example 90s, 1.5s, 250ms, 10m or 1h30m");
    let mut rest = text.trim();
    let mut total = 0.0;
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
        let number: f64 = rest[..digits].parse().map_err(|_| wrong())?;
        rest = &rest[digits..];
        let letters = rest.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(rest.len());
        total += number * seconds(&rest[..letters]).ok_or_else(wrong)?;
        rest = &rest[letters..];
    }
    if text.trim().is_empty() {
        return Err(wrong());
    }
    Duration::try_from_secs_f64(total).map_err(|_| wrong())
}

fn seconds(unit: &str) -> Option<f64> {
    match unit {
        "ms" => Some(0.001),
        "" | "s" => Some(1.0),
        "m" | "min" => Some(60.0),
        "h" => Some(3600.0),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_people_write_is_understood() {
        let ms = |text| parse(text).unwrap().as_millis();
        assert_eq!(ms("90"), 90_000);
        assert_eq!(ms("1.5s"), 1_500);
        assert_eq!(ms("250ms"), 250);
        assert_eq!(ms("1h30m"), 5_400_000);
        assert_eq!(ms("0"), 0);
    }

    #[test]
    fn anything_else_is_refused_with_an_example() {
        for text in ["", " ", "soon", "10x", "-5s", "1..5s", "s", "1e400", "99999999999999999999999h"] {
            assert!(parse(text).unwrap_err().contains("1h30m"), "{text}");
        }
    }
}
