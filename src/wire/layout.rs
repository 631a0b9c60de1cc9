//! The bytes of the wire, as `cpp/wire.h` lays them out.

/// `SPSCTRL1`
pub(super) const CONTROL_MAGIC: u64 = u64::from_le_bytes(*b"SPSCTRL1");
/// `SPPSSEG1`
pub(super) const SEGMENT_MAGIC: u64 = u64::from_le_bytes(*b"SPPSSEG1");
pub(super) const VERSION: u32 = 1;
pub(super) const PAGE: u64 = 4096;
pub(super) const SLOT: usize = 64;
pub(super) const SEGMENT_BYTES: u64 = 1 << 20;
pub(super) const SLOTS_PER_SEGMENT: u64 = (SEGMENT_BYTES - PAGE) / SLOT as u64;
pub(super) const TEXT_PER_SLOT: usize = SLOT - 8;
pub(super) const MAX_TEXT: usize = 32 * 1024;

/// Offsets into the control page.
pub(super) mod control {
    pub(in crate::wire) const SOURCE: u64 = 12;
    pub(in crate::wire) const CANCEL: u64 = 16;
    pub(in crate::wire) const REQUESTED_AT: u64 = 24;
    pub(in crate::wire) const SENDER: u64 = 32;
    pub(in crate::wire) const ANCHOR: u64 = 40;
    pub(in crate::wire) const VIA: u64 = 56;
    pub(in crate::wire) const PROCESSES: u64 = 64;
    pub(in crate::wire) const LOST: u64 = 72;
}

/// Kinds of slots.
pub(super) mod kind {
    pub(in crate::wire) const NAME: u8 = 1;
    pub(in crate::wire) const LIBRARY: u8 = 2;
    pub(in crate::wire) const REFUSED: u8 = 3;
    pub(in crate::wire) const BUILD_START: u8 = 4;
    pub(in crate::wire) const PHASE_START: u8 = 5;
    pub(in crate::wire) const STEP: u8 = 6;
    pub(in crate::wire) const PHASE_FINISH: u8 = 7;
    pub(in crate::wire) const APPLICATION_FALSE: u8 = 8;
    pub(in crate::wire) const BUILD_RETURN: u8 = 9;
    pub(in crate::wire) const MESSAGE: u8 = 10;
    pub(in crate::wire) const MESSAGE_COUNTS: u8 = 11;
    pub(in crate::wire) const BUILD_FACTS: u8 = 12;
    pub(in crate::wire) const CONTINUATION: u8 = 255;
}

/// One slot, as words.
#[derive(Debug, Clone, Copy)]
pub(super) struct Slot {
    pub(super) kind: u8,
    pub(super) flags: u8,
    pub(super) span: u16,
    words: [u64; 7],
}

/// What stands in a slot's place.
pub(super) enum Found {
    /// Nothing was committed.
    Empty,
    /// Committed words that do not fit their check.
    Torn,
    /// A whole slot.
    Whole(Slot),
}

impl Slot {
    /// Reads the 64 bytes of a slot.
    pub(super) fn read(bytes: &[u8]) -> Found {
        let head = word(bytes, 0);
        if head == 0 {
            return Found::Empty;
        }
        let words: [u64; 7] = std::array::from_fn(|i| word(bytes, 8 + 8 * i));
        let low = head as u32;
        if check(low, &words) != (head >> 32) as u32 {
            return Found::Torn;
        }
        Found::Whole(Self { kind: low as u8, flags: (low >> 8) as u8, span: (low >> 16) as u16, words })
    }

    pub(super) fn mono(&self) -> u64 {
        self.words[0]
    }

    pub(super) fn build(&self) -> u32 {
        self.words[1] as u32
    }

    pub(super) fn tid(&self) -> u32 {
        (self.words[1] >> 32) as u32
    }

    pub(super) fn name(&self) -> u32 {
        self.words[2] as u32
    }

    pub(super) fn parent(&self) -> u32 {
        (self.words[2] >> 32) as u32
    }

    pub(super) fn a(&self) -> i32 {
        (self.words[3] as u32).cast_signed()
    }

    pub(super) fn b(&self) -> u32 {
        (self.words[3] >> 32) as u32
    }

    /// The words `c`, `d` and `e`.
    pub(super) fn rest(&self) -> [u64; 3] {
        [self.words[4], self.words[5], self.words[6]]
    }

    /// The length of the text that follows.
    pub(super) fn text_bytes(&self) -> usize {
        usize::try_from(self.words[4]).unwrap_or(usize::MAX).min(MAX_TEXT)
    }

    /// The piece of text in a continuation slot.
    pub(super) fn text(&self) -> [u8; TEXT_PER_SLOT] {
        let mut text = [0; TEXT_PER_SLOT];
        for (piece, word) in text.chunks_exact_mut(8).zip(self.words) {
            piece.copy_from_slice(&word.to_le_bytes());
        }
        text
    }
}

/// The little-endian word at a place.
pub(super) fn word(bytes: &[u8], at: usize) -> u64 {
    bytes.get(at..at + 8).map_or(0, |b| u64::from_le_bytes(b.try_into().unwrap_or_default()))
}

/// The check of a slot; the same fold as in `cpp/wire.h`.
pub(super) fn check(low: u32, words: &[u64; 7]) -> u32 {
    const ODD: u64 = 0x9E37_79B9_7F4A_7C15;
    let mut even = u64::from(low);
    let mut odd = ODD;
    for pair in words[..6].chunks_exact(2) {
        even = (even ^ pair[0]).wrapping_mul(ODD);
        odd = (odd ^ pair[1]).wrapping_mul(ODD);
        even ^= even >> 29;
        odd ^= odd >> 29;
    }
    even = (even ^ words[6]).wrapping_mul(ODD);
    let folded = (even ^ (odd >> 17) ^ (odd << 47)).wrapping_mul(ODD);
    (folded >> 32) as u32
}
