//! Compiled R1CS circuits: block templates and calls, statistics, expansion and evaluation.
