//! The API, resource by resource, through the router, on both engines.

mod folders;
