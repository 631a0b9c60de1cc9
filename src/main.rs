//! The `stuckproof` command.

fn main() -> std::process::ExitCode {
    stuckproof::cli::main()
}
