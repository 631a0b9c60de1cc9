//! What a host says of its job to the steps that come after.

use super::{Variable, wait};
use crate::event::HostReported;

/// The option that brings the word of a host that has no variable for it.
const OPTION: &str = "--host-status";
/// The variables, in words of the hosts' own: GitLab's in an `after_script`, Azure's in a step with a condition.
const VARIABLES: [&str; 2] = ["CI_JOB_STATUS", "AGENT_JOBSTATUS"];
/// So much of it is kept; the words of the hosts are short.
const LONGEST: usize = 100;

/// What the host says: what the user passes on, else what stands in the environment.
#[must_use]
pub fn host_report(wanted: Option<&str>) -> Option<HostReported> {
    read(wanted, &super::variable)
}

fn read(wanted: Option<&str>, variable: Variable) -> Option<HostReported> {
    let report = |status: &str, told_by: &str| {
        let status: String = status.trim().chars().filter(|c| !c.is_control()).take(LONGEST).collect();
        (!status.is_empty()).then(|| HostReported { status, told_by: told_by.to_owned() })
    };
    let by_variable = || VARIABLES.iter().find_map(|name| report(&variable(name)?, name));
    let by_marker = || report("timed_out", wait::timed_out("buildkite", variable)?);
    wanted.and_then(|status| report(status, OPTION)).or_else(by_variable).or_else(by_marker)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(wanted: Option<&str>, variables: &[(&str, &str)]) -> Option<(String, String)> {
        let find = |name: &str| variables.iter().find(|(n, _)| *n == name).map(|(_, v)| (*v).to_owned());
        read(wanted, &find).map(|report| (report.status, report.told_by))
    }

    #[test]
    fn the_user_comes_first_then_the_variables_then_the_marker() {
        let pair = |status: &str, by: &str| Some((status.to_owned(), by.to_owned()));
        let here = ("BUILDKITE_AGENT_JOB_TIMEOUT_FILE", "/proc/self/stat");
        let gitlab = ("CI_JOB_STATUS", "canceled");
        assert_eq!(told(Some("cancelled"), &[gitlab]), pair("cancelled", "--host-status"));
        assert_eq!(told(Some(" "), &[gitlab, here]), pair("canceled", "CI_JOB_STATUS"));
        assert_eq!(told(None, &[("AGENT_JOBSTATUS", "Canceled")]), pair("Canceled", "AGENT_JOBSTATUS"));
        assert_eq!(told(None, &[here]), pair("timed_out", here.0));
        assert_eq!(told(None, &[(here.0, "/nowhere")]), None);
        assert_eq!(told(Some("a\nb"), &[]), pair("ab", "--host-status"));
    }
}
