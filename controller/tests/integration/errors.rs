//! The error types of all crates can be returned as `Box<dyn Error + Send + Sync>`. `tests/house` checks that no type is missing here.

use std::error::Error;
use std::fmt::{Debug, Display};

fn is_error<E: Error + Debug + Display + Send + Sync + 'static>() {}

#[test]
fn errors_cross_threads() {
    is_error::<tracepoint::runtime::TracepointNotFound>();
    is_error::<tracepoint::runtime::ParseLevelError>();
    is_error::<tracepoint::probe::RegisterError>();
    is_error::<tracepoint::probe::SiteSwitchError>();
    is_error::<tracepoint_ring::channel::ConfigError>();
    is_error::<tracepoint_ring::channel::FinishError>();
    is_error::<tracepoint_ring::channel::TooManyEvents>();
    is_error::<tracepoint_ring::clock::ClockInUse>();
    is_error::<tracepoint::probes::FormatError>();
    is_error::<tracepoint::probes::StatisticError>();
    is_error::<tracepoint_reader::ReadError>();
    is_error::<tracepoint_reader::RecoverError>();
    is_error::<tracepoint_reader::convert::ConvertError>();
    is_error::<tracepoint_reader::kernel::FormatError>();
    is_error::<tracepoint_reader::live::LiveError>();
    is_error::<tracepoint_reader::udp::DirectoryError>();
    is_error::<tracepoint_reader::usdt::NotesError>();
    is_error::<tracepoint_session::sinks::CtfError>();
    is_error::<tracepoint_session::sinks::DtError>();
    is_error::<tracepoint_session::sinks::SinkError>();
    is_error::<tracepoint_session::AgentError>();
    is_error::<tracepoint_session_io::ControlError>();
    is_error::<tracepoint_session_io::outputs::OutputError>();
    is_error::<tracepoint_session_spec::CpuPercentError>();
    is_error::<tracepoint_run_dir::DirError>();
    is_error::<tracepoint_controller::KernelError>();
    is_error::<tracepoint_session_spec::LevelError>();
    is_error::<tracepoint_session_spec::LimitError>();
    is_error::<tracepoint_session_spec::NameError>();
    is_error::<tracepoint_session_spec::NameRuleError>();
    is_error::<tracepoint_reader::process::ProcessKeyError>();
    is_error::<tracepoint_run_dir::RingDirError>();
    is_error::<tracepoint_session_spec::RuleError>();
    is_error::<tracepoint_session_spec::RuleProblem>();
    is_error::<tracepoint_session_spec::RuleStatisticError>();
    is_error::<tracepoint_run_dir::RunDirError>();
    is_error::<tracepoint_session::SessionError>();
    is_error::<tracepoint_session::SinkFailure>();
    is_error::<tracepoint_session_spec::SpecError>();
    is_error::<tracepoint_session_spec::ThresholdError>();
    is_error::<tracepoint_session_spec::TriggerPartError>();
    is_error::<tracepoint_session_spec::TraceFilterError>();
    is_error::<tracepoint_session_spec::filter::FilterError>();
    is_error::<tracepoint_session_spec::table::TableError>();
    is_error::<tracepoint_controller::trigger::PayloadTooLong>();
    is_error::<tracepoint_controller::core_dump::CoreArgumentsError>();
    is_error::<tracepoint_controller::core_dump::CoreHandlerError>();
    is_error::<tracepoint_controller::core_dump::PatternError>();
    is_error::<tracepoint_controller::trigger::TriggerError>();
    is_error::<tracepoint_session_spec::syntax::SyntaxError>();
    is_error::<tracepoint_sinks::DestinationError>();
    is_error::<tracepoint_wire::nats::BrokerUrlError>();
    is_error::<tracepoint_wire::DecodeError>();
    // `tracepoint_wire::nats::JetStreamError` needs the client of a broker: see `wire/src/nats/tests.rs`.
    is_error::<tracepoint_wire::stream::DecodeError>();
    is_error::<tracepoint_wire::udp::DecodeError>();
}
