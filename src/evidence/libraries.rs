//! The library of each process, found without a search: a job may start any number of processes and builds.

use super::{config, summary};
use crate::event::LibraryAttached;
use std::collections::HashMap;

/// The libraries that a job met, by their processes.
pub(super) struct Libraries<'a> {
    all: &'a [LibraryAttached],
    /// The last one of each process.
    places: HashMap<u32, usize>,
    /// The one that every process shares that has none of its own.
    shared: Option<usize>,
}

impl<'a> Libraries<'a> {
    pub(super) fn of(all: &'a [LibraryAttached]) -> Self {
        let places = all.iter().enumerate().map(|(place, library)| (library.pid, place)).collect();
        let one = all.windows(2).all(|two| same(&two[0], &two[1]));
        Self { all, places, shared: all.len().checked_sub(1).filter(|_| one) }
    }

    /// The library of a process. A process that was forked after the library had been met shares its parent's, which is
    /// known where the whole job has met one library only.
    pub(super) fn in_process(&self, pid: u32) -> Option<&'a LibraryAttached> {
        self.place(pid).map(|place| &self.all[place])
    }

    /// Its place in the list.
    pub(super) fn place(&self, pid: u32) -> Option<usize> {
        self.places.get(&pid).copied().or(self.shared)
    }
}

fn same(one: &LibraryAttached, other: &LibraryAttached) -> bool {
    (&one.flavour, &one.version) == (&other.flavour, &other.version)
}

/// What each build says of its library, made once a library.
pub(super) struct Told {
    pub(super) name: String,
    /// What stands for it in the hash of a configuration.
    pub(super) digest: String,
}

impl Told {
    pub(super) fn of(library: &LibraryAttached) -> Self {
        Self { name: summary::library_name(library), digest: config::library(library) }
    }
}
