//! The UDP trace server, tested by clients.

mod batch;
mod batch_client;
mod hostile;
mod ingest;
mod legacy;
mod legacy_client;
mod served;

pub(crate) type Outcome = Result<(), Box<dyn std::error::Error>>;
