//! Which devices CUDA shows to the command, by `CUDA_VISIBLE_DEVICES` and `CUDA_DEVICE_ORDER`.

use super::{Device, InUse};

/// What decides.
pub(super) struct Visibility<'a> {
    /// `CUDA_VISIBLE_DEVICES`
    pub(super) variable: Option<&'a str>,
    /// Whether CUDA counts by PCI bus, as NVML does.
    pub(super) by_bus: bool,
    /// Every device, in NVML's order.
    pub(super) devices: &'a [Device],
}

/// What the command can use.
#[derive(Debug, PartialEq)]
pub(super) enum Shown {
    /// These, in CUDA's order.
    Devices(Vec<InUse>),
    /// None, for this reason.
    Nothing(String),
    /// That cannot be told, for this reason.
    Unknown(String),
}

impl Visibility<'_> {
    /// Resolves the variable as CUDA does: entries count up to the first that names no device. `slice` finds the slice
    /// of a device by its UUID.
    pub(super) fn resolve(&self, slice: impl Fn(&str) -> Option<InUse>) -> Shown {
        if self.devices.is_empty() {
            return Shown::Nothing("NVML knows of no device".to_owned());
        }
        let Some(variable) = self.variable else { return self.all() };
        let mut shown = Vec::new();
        for entry in variable.split(',').map(str::trim) {
            let found = match entry.parse::<i64>() {
                Ok(_) if self.sliced() => return Shown::Unknown(SLICED.to_owned()),
                Ok(_) if !self.countable() => return Shown::Unknown(UNORDERED.to_owned()),
                Ok(number) => {
                    usize::try_from(number).ok().and_then(|place| self.devices.get(place)).and_then(in_use)
                }
                Err(_) if entry.starts_with("MIG-") => slice(entry),
                Err(_) => self.by_uuid(entry),
            };
            let Some(found) = found.filter(|found| !shown.contains(found)) else { break };
            shown.push(found);
        }
        if shown.is_empty() {
            return Shown::Nothing(format!("CUDA_VISIBLE_DEVICES={variable} shows no device"));
        }
        Shown::Devices(shown)
    }

    fn all(&self) -> Shown {
        match self.devices.iter().map(in_use).collect::<Option<Vec<_>>>() {
            _ if self.sliced() => Shown::Unknown(SLICED.to_owned()),
            Some(_) if !self.countable() => Shown::Unknown(UNORDERED.to_owned()),
            Some(all) => Shown::Devices(all),
            None => Shown::Unknown("NVML gives no name or UUID of a device".to_owned()),
        }
    }

    /// A UUID may be cut, as long as it names one device.
    fn by_uuid(&self, entry: &str) -> Option<InUse> {
        let matches = |device: &&Device| {
            entry.starts_with("GPU-") && device.uuid.as_deref().is_some_and(|uuid| uuid.starts_with(entry))
        };
        let mut found = self.devices.iter().filter(matches);
        let first = found.next().filter(|_| found.next().is_none());
        first.and_then(in_use)
    }

    /// Whether CUDA's numbers are NVML's: CUDA may put the fastest first, which changes nothing among equals.
    fn countable(&self) -> bool {
        self.by_bus || self.devices.windows(2).all(|pair| pair[0].name == pair[1].name)
    }

    fn sliced(&self) -> bool {
        self.devices.iter().any(|device| device.mig == Some(true))
    }
}

const UNORDERED: &str = "unlike GPUs, which CUDA numbers by speed and NVML by bus; set CUDA_DEVICE_ORDER=PCI_BUS_ID \
                         or name the device in CUDA_VISIBLE_DEVICES by its UUID";
const SLICED: &str = "MIG is on; name the slice in CUDA_VISIBLE_DEVICES by its UUID";

fn in_use(device: &Device) -> Option<InUse> {
    Some(InUse { uuid: device.uuid.clone()?, name: device.name.clone()? })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn device(index: u32, uuid: &str, name: &str) -> Device {
        Device { index, uuid: Some(uuid.to_owned()), name: Some(name.to_owned()), ..Device::default() }
    }

    fn resolve(variable: Option<&str>, by_bus: bool, devices: &[Device]) -> Result<Vec<String>, String> {
        let slice = |uuid: &str| {
            (uuid == "MIG-1").then(|| InUse { uuid: uuid.to_owned(), name: "H200 MIG 1g.18gb".to_owned() })
        };
        match (Visibility { variable, by_bus, devices }).resolve(slice) {
            Shown::Devices(shown) => Ok(shown.into_iter().map(|device| device.uuid).collect()),
            Shown::Nothing(why) => Err(format!("nothing: {why}")),
            Shown::Unknown(why) => Err(format!("unknown: {why}")),
        }
    }

    #[test]
    fn numbers_and_uuids_lead_to_devices_up_to_the_first_that_does_not() {
        let alike = [device(0, "GPU-aa1", "L4"), device(1, "GPU-ab2", "L4"), device(2, "GPU-b", "L4")];
        let ok = |variable, expected: &[&str]| {
            assert_eq!(resolve(variable, false, &alike).unwrap(), expected, "{variable:?}");
        };
        ok(None, &["GPU-aa1", "GPU-ab2", "GPU-b"]);
        ok(Some("2,0"), &["GPU-b", "GPU-aa1"]);
        ok(Some("1, -1, 0"), &["GPU-ab2"]);
        ok(Some("GPU-b,1"), &["GPU-b", "GPU-ab2"]);
        ok(Some("GPU-aa,GPU-a"), &["GPU-aa1"]);
        ok(Some("0,7,1"), &["GPU-aa1"]);
        ok(Some("0,0"), &["GPU-aa1"]);
    }

    #[test]
    fn what_hides_every_device_is_told() {
        let one = [device(0, "GPU-a", "L4")];
        for hidden in ["", "-1", "NoDevFiles", "GPU-x", "MIG-2"] {
            let why = resolve(Some(hidden), true, &one).unwrap_err();
            assert_eq!(why, format!("nothing: CUDA_VISIBLE_DEVICES={hidden} shows no device"));
        }
        assert!(resolve(None, true, &[]).unwrap_err().starts_with("nothing"));
    }

    #[test]
    fn nothing_is_guessed_where_cuda_counts_otherwise() {
        let unlike = [device(0, "GPU-a", "T4"), device(1, "GPU-b", "H200")];
        assert!(resolve(Some("0"), false, &unlike).unwrap_err().starts_with("unknown: unlike GPUs"));
        assert!(resolve(None, false, &unlike).unwrap_err().starts_with("unknown: unlike GPUs"));
        assert_eq!(resolve(Some("0"), true, &unlike).unwrap(), ["GPU-a"]);
        assert_eq!(resolve(Some("GPU-b"), false, &unlike).unwrap(), ["GPU-b"]);
        let sliced = [Device { mig: Some(true), ..device(0, "GPU-a", "H200") }];
        assert!(resolve(Some("0"), true, &sliced).unwrap_err().starts_with("unknown: MIG is on"));
        assert!(resolve(None, true, &sliced).unwrap_err().starts_with("unknown: MIG is on"));
        assert_eq!(resolve(Some("MIG-1"), true, &sliced).unwrap(), ["MIG-1"]);
    }
}
