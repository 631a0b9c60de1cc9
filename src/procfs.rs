//! The `stat` line of a process or of a thread, as `/proc` has it.

/// What the line says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stat {
    /// The name, as the kernel keeps it.
    pub name: String,
    /// The state: `R`, `S`, `D`, `T`, `t`, `Z`, `X` or `I`.
    pub state: char,
    /// The parent's process.
    pub parent: u32,
    /// The process group.
    pub group: u32,
    /// The session.
    pub session: u32,
    /// Time on a processor, in ticks.
    pub own_ticks: u64,
    /// The same of all children that were waited for, in ticks.
    pub reaped_ticks: u64,
    /// Threads.
    pub threads: u64,
    /// When it started, in ticks since the machine did: with its number this names it for good.
    pub started: u64,
    /// Resident memory, in pages.
    pub resident_pages: u64,
}

impl Stat {
    /// Reads the line; nothing where it is not one.
    #[must_use]
    pub fn parse(line: &str) -> Option<Self> {
        // The name stands in parentheses and may hold anything, parentheses and blanks included.
        let (before, after) = line.rsplit_once(") ")?;
        let (_, name) = before.split_once(" (")?;
        let fields: Vec<&str> = after.split_ascii_whitespace().collect();
        let number = |at: usize| fields.get(at)?.parse::<u64>().ok();
        let small = |at| u32::try_from(number(at)?).ok();
        Some(Self {
            name: name.to_owned(),
            state: fields.first()?.chars().next()?,
            parent: small(1)?,
            group: small(2)?,
            session: small(3)?,
            own_ticks: number(11)?.saturating_add(number(12)?),
            reaped_ticks: number(13)?.saturating_add(number(14)?),
            threads: number(17)?,
            started: number(19)?,
            resident_pages: number(21).unwrap_or(0),
        })
    }

    /// Whether it lives. A leader whose other threads go on looks like a zombie, and is none.
    #[must_use]
    pub fn lives(&self) -> bool {
        !matches!(self.state, 'Z' | 'X') || self.threads > 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_name_may_hold_anything() {
        let line = "42 (a ) S 1 (b)) R 1 77 78 0 -1 0 0 0 0 0 5 6 7 8 20 0 1 0 555 0 9";
        let stat = Stat::parse(line).unwrap();
        assert_eq!((stat.name.as_str(), stat.state, stat.parent), ("a ) S 1 (b)", 'R', 1));
        assert_eq!((stat.group, stat.session, stat.started), (77, 78, 555));
        assert_eq!((stat.own_ticks, stat.reaped_ticks, stat.resident_pages), (11, 15, 9));
    }

    #[test]
    fn a_zombie_is_dead_unless_threads_of_it_go_on() {
        let line = |threads| format!("42 (x) Z 1 7 7 0 -1 0 0 0 0 0 0 0 0 0 20 0 {threads} 0 555 0");
        assert!(!Stat::parse(&line(1)).unwrap().lives());
        assert!(Stat::parse(&line(2)).unwrap().lives());
    }

    proptest! {
        #[test]
        fn damaged_lines_are_no_processes_and_no_panic(line in ".*", numbers in proptest::collection::vec(any::<i128>(), 0..30)) {
            let _ = Stat::parse(&line);
            let numbers: Vec<String> = numbers.iter().map(ToString::to_string).collect();
            let _ = Stat::parse(&format!("1 (x) R {}", numbers.join(" ")));
        }
    }
}
