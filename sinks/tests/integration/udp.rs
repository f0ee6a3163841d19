//! The UDP trace server, as its clients see it.

mod batch;
mod batch_client;
mod hostile;
mod ingest;
mod legacy;
mod legacy_client;
mod served;

pub(crate) type Outcome = Result<(), Box<dyn std::error::Error>>;
