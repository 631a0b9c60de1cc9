//! The bundle's disk fills up at a random moment: the build does not notice, and the job fails for what is missing.

