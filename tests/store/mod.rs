//! The store on its own.

mod blobs;
