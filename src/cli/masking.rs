//! The options that say what a secret is.

use crate::mask::Rules;
use clap::Args;

#[derive(Debug, Args)]
pub(super) struct Masking {
    /// Take the values of these variables for secrets too; `*` stands for any characters, and the option may be repeated
    #[arg(long, value_name = "NAME")]
    mask_env: Vec<String>,
    /// Do not take the values of these variables for secrets, whatever their names look like
    #[arg(long, value_name = "NAME")]
    no_mask_env: Vec<String>,
}

impl From<Masking> for Rules {
    fn from(options: Masking) -> Self {
        Self { also: options.mask_env, never: options.no_mask_env }
    }
}
