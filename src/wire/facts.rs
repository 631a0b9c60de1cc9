//! The facts of a build, as the attach library tells them: pairs of text, `key NUL value NUL`.

use crate::event::{BuildFacts, ProfileShape, Tensor};

/// Reads the pairs. A pair that is not understood, or cut off, makes the facts incomplete and nothing else.
pub(super) fn decode(text: &str, cut: bool) -> BuildFacts {
    let mut facts = BuildFacts { incomplete: cut, ..BuildFacts::default() };
    let mut parts = text.split_terminator('\0');
    while let Some(key) = parts.next() {
        let understood = parts.next().is_some_and(|value| take(&mut facts, key, value).is_some());
        facts.incomplete |= !understood;
    }
    facts
}

fn take(facts: &mut BuildFacts, key: &str, value: &str) -> Option<()> {
    match key {
        "computeCapability" => facts.compute_capabilities.push(value.parse().ok()?),
        "timingCacheAttached" => facts.timing_cache_attached = Some(value == "1"),
        "networkFlags" => facts.network_flags = value.parse().ok()?,
        "layers" => facts.layers = value.parse().ok()?,
        "layerKind" => {
            let (kind, count) = value.split_once(':')?;
            facts.layer_kinds.insert(kind.to_owned(), count.parse().ok()?);
        }
        "input" => facts.inputs.push(tensor(value)?),
        "output" => facts.outputs.push(tensor(value)?),
        "profile" => facts.profiles.push(profile(value)?),
        "notTold" => facts.incomplete = true,
        number => {
            facts.config.insert(number.to_owned(), value.parse().ok()?);
        }
    }
    Some(())
}

/// `type shape name`; the name comes last, since it may hold anything.
fn tensor(value: &str) -> Option<Tensor> {
    let mut parts = value.splitn(3, ' ');
    let data_type = parts.next()?.parse().ok()?;
    let shape = parts.next()?.to_owned();
    Some(Tensor { data_type, shape, name: parts.next()?.to_owned() })
}

/// `number min opt max name`.
fn profile(value: &str) -> Option<ProfileShape> {
    let mut parts = value.splitn(5, ' ').map(str::to_owned);
    let profile = parts.next()?.parse().ok()?;
    let (min, opt, max) = (parts.next()?, parts.next()?, parts.next()?);
    Some(ProfileShape { profile, min, opt, max, input: parts.next()? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_become_facts() {
        let text = "flags\x007\0computeCapability\x0012\0layers\x003\0layerKind\x000:2\0layerKind\x004:1\0\
                    input\x000 1x-1x8 an input\0output\x001  out\0profile\x000 1x1x8 1x2x8 1x4x8 an input\0";
        let facts = decode(text, false);
        assert_eq!(facts.config.get("flags"), Some(&7));
        assert_eq!(facts.compute_capabilities, [12]);
        assert_eq!(facts.layer_kinds.values().sum::<u32>(), 3);
        assert_eq!(facts.inputs[0].name, "an input");
        assert_eq!(facts.outputs[0].shape, "");
        assert_eq!(facts.profiles[0].max, "1x4x8");
        assert!(!facts.incomplete);
    }

    #[test]
    fn nonsense_makes_them_incomplete() {
        for text in ["flags\0seven\0", "flags\0", "input\0x\0", "profile\x000 1\0", "layerKind\x004\0"] {
            assert!(decode(text, false).incomplete, "{text:?}");
        }
        assert!(decode("", true).incomplete);
    }
}
