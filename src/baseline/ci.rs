//! The CI job around this one, from the variables that its host documents.

use super::{Ci, Nulls};
use crate::mask;

/// The variables of one host, in the order of [`FIELDS`]; the first that is set counts.
type Variables = [&'static [&'static str]; 6];

const FIELDS: [&str; 6] = ["repository", "commit", "reference", "run", "attempt", "job"];

const HOSTS: [(&str, Variables); 6] = [
    (
        "github",
        [
            &["GITHUB_REPOSITORY"],
            &["GITHUB_SHA"],
            &["GITHUB_REF"],
            &["GITHUB_RUN_ID"],
            &["GITHUB_RUN_ATTEMPT"],
            &["GITHUB_JOB"],
        ],
    ),
    (
        "gitlab",
        [
            &["CI_PROJECT_PATH"],
            &["CI_COMMIT_SHA"],
            &["CI_COMMIT_REF_NAME"],
            &["CI_PIPELINE_ID"],
            &[],
            &["CI_JOB_ID"],
        ],
    ),
    (
        "buildkite",
        [
            &["BUILDKITE_REPO"],
            &["BUILDKITE_COMMIT"],
            &["BUILDKITE_BRANCH"],
            &["BUILDKITE_BUILD_ID"],
            &["BUILDKITE_RETRY_COUNT"],
            &["BUILDKITE_JOB_ID"],
        ],
    ),
    (
        "azure",
        [
            &["BUILD_REPOSITORY_NAME"],
            &["BUILD_SOURCEVERSION"],
            &["BUILD_SOURCEBRANCH"],
            &["BUILD_BUILDID"],
            &["SYSTEM_JOBATTEMPT"],
            &["SYSTEM_JOBID"],
        ],
    ),
    (
        "circleci",
        [
            &["CIRCLE_REPOSITORY_URL"],
            &["CIRCLE_SHA1"],
            &["CIRCLE_BRANCH", "CIRCLE_TAG"],
            &["CIRCLE_WORKFLOW_ID"],
            &[],
            &["CIRCLE_JOB"],
        ],
    ),
    (
        "jenkins",
        [
            &["GIT_URL", "GIT_URL_1"],
            &["GIT_COMMIT"],
            &["BRANCH_NAME", "GIT_BRANCH"],
            &["BUILD_NUMBER"],
            &[],
            &["JOB_NAME"],
        ],
    ),
];

pub(super) fn read(host: &str, variable: &impl Fn(&str) -> Option<String>, nulls: &mut Nulls) -> Ci {
    let known = HOSTS.iter().find(|(name, _)| *name == host).map(|(_, variables)| variables);
    let mut values = FIELDS.iter().enumerate().map(|(place, field)| {
        let names = known.map_or(&[][..], |variables| variables[place]);
        let found = names.iter().find_map(|name| Some(mask::value(name, &variable(name)?)));
        if found.is_none() {
            nulls.put(&format!("ci.{field}"), reason(names));
        }
        found
    });
    let mut next = || values.next().flatten();
    Ci {
        host: host.to_owned(),
        repository: next(),
        commit: next(),
        reference: next(),
        run: next(),
        attempt: next(),
        job: next(),
    }
}

fn reason(names: &[&str]) -> String {
    match names {
        [] => "no variable of this host is known to tell it".to_owned(),
        [name] => format!("{name} is not set"),
        names => format!("none of {} is set", names.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_host_has_its_own_words() {
        for (host, variables) in HOSTS {
            let all: Vec<&str> = variables.iter().filter_map(|names| names.first()).copied().collect();
            let find = |name: &str| all.contains(&name).then(|| format!("the {name}"));
            let mut nulls = Nulls::default();
            let ci = read(host, &find, &mut nulls);
            assert_eq!(ci.commit, Some(format!("the {}", variables[1][0])));
            assert_eq!(ci.job, Some(format!("the {}", variables[5][0])));
            assert_eq!(ci.attempt.is_none(), nulls.0.contains_key("ci.attempt"), "{host}");
        }
    }

    #[test]
    fn an_address_of_a_repository_loses_its_password() {
        let find = |name: &str| (name == "GIT_URL").then(|| "https://bot:pass@git.example/r.git".to_owned());
        let mut nulls = Nulls::default();
        let ci = read("jenkins", &find, &mut nulls);
        assert_eq!(ci.repository.as_deref(), Some("https://(masked)@git.example/r.git"));
        assert_eq!(nulls.0["ci.commit"], "GIT_COMMIT is not set");
        assert_eq!(nulls.0["ci.reference"], "none of BRANCH_NAME, GIT_BRANCH is set");
    }
}
