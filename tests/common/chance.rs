//! Chance that can be repeated, and how much of it is wanted.

/// Chance from a seed (splitmix64).
pub struct Chance(pub u64);

impl Chance {
    /// A number from 0 to `bound`, which is not reached.
    pub fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % bound
    }

    /// A place among so many.
    pub fn place(&mut self, among: usize) -> usize {
        self.below(among as u64) as usize
    }

    /// Once in so many times.
    pub fn one_in(&mut self, times: u64) -> bool {
        self.below(times) == 0
    }

    /// One of these.
    pub fn one_of<T: Copy>(&mut self, these: &[T]) -> T {
        these[self.place(these.len())]
    }
}

/// A number that `scripts/soak` sets through the environment.
pub fn setting(name: &str, default: u64) -> u64 {
    std::env::var(name).map_or(default, |text| text.parse().expect("a number"))
}
