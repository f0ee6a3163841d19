//! A viewer of live sessions against relays in memory: a model that is honest, and hostile ones.

mod hostile;
mod model;
mod relay;
mod viewed;
