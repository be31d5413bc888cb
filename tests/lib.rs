//! Empty on purpose: the package exists for its integration tests.
