//! A viewer of live sessions against relays in memory: a correct model, and malicious ones.

mod hostile;
mod model;
mod relay;
mod viewed;
