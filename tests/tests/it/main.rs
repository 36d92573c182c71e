//! Whole-system tests: the real binary, real files, and the kit at the very bottom.

mod architecture;
