//! The UDP trace server, as its clients see it.

mod batch;
mod batch_client;
mod hostile;
mod outside;
mod served;
mod stock;
mod stock_client;

pub(crate) type Outcome = Result<(), Box<dyn std::error::Error>>;
