//! The command line with ordinary commands: no `TensorRT` anywhere.

mod archive;
mod bad_input;
mod baseline;
mod clock;
mod control;
mod diff;
mod exit_codes;
mod host;
mod ladder;
mod nested;
mod pack;
mod planted;
mod review;
mod rig;
mod seal;
mod secrets;
mod sources;
mod streams;
mod terminal;
