//! Programs a reader can finish in five minutes; see `examples/`.
