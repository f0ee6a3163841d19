//! The descriptions that the agent writes of its process and the tracepoints in it.

use crate::catalog::Catalog;
use tracepoint_core::field::FieldDescriptor;
use tracepoint_core::{Location, Marker, Tracepoint};
use tracepoint_reader::account::uuid_text;
use tracepoint_reader::internal::boot_id;
use tracepoint_reader::process;
use tracepoint_run_dir::app::{ApplicationInfo, ArgumentInfo, FieldInfo, TracepointInfo, TracepointKind};
use tracepoint_run_dir::own_process::this_process;
use tracepoint_session_io::sink_features::built_sinks;

/// Describes this process.
pub(super) fn describe_process(tag: Option<String>) -> ApplicationInfo {
    let process = this_process();
    let mut info = ApplicationInfo::default();
    info.pid = process.pid;
    info.started = process::started();
    info.boot = boot_id().map(uuid_text).unwrap_or_default();
    info.pid_namespace = process::own_pid_namespace();
    info.user = rustix::process::geteuid().as_raw();
    info.name = process.name;
    info.executable = process.executable;
    info.hostname = process.hostname;
    info.platform = tracepoint_core::platform().to_string();
    info.tag = tag;
    env!("CARGO_PKG_VERSION").clone_into(&mut info.library);
    info.sinks = Some(built_sinks());
    info.waits_for_recorder = true;
    info
}

/// Describes all tracepoints and markers of this program.
pub(super) fn describe_tracepoints(catalog: &Catalog) -> Vec<TracepointInfo> {
    let mut all: Vec<_> = catalog.tracepoints().map(of_tracepoint).collect();
    all.extend(catalog.markers().filter(|marker| !marker.is_of_tracepoint()).map(of_marker));
    all.sort_by(|a, b| (&a.name, &a.declared).cmp(&(&b.name, &b.declared)));
    all
}

fn of_tracepoint(tracepoint: &'static Tracepoint) -> TracepointInfo {
    let marker = tracepoint.marker();
    let argument = |a: &tracepoint_core::Argument| ArgumentInfo::new(a.name, a.ty);
    let mut info = TracepointInfo::default();
    info.name = tracepoint.full_name();
    info.kind = if marker.is_some() { TracepointKind::Event } else { TracepointKind::Hook };
    info.level = tracepoint.level().to_string();
    info.arguments = tracepoint.arguments().iter().map(argument).collect();
    tracepoint.condition().clone_into(&mut info.condition);
    info.fields = marker.map(|marker| fields(marker.fields())).unwrap_or_default();
    tracepoint.doc().clone_into(&mut info.doc);
    info.declared = declared(tracepoint.location());
    info
}

fn of_marker(marker: &'static Marker) -> TracepointInfo {
    let mut info = TracepointInfo::default();
    info.name = marker.full_name();
    info.kind = TracepointKind::Marker;
    info.level = marker.level().to_string();
    info.fields = fields(marker.fields());
    marker.doc().clone_into(&mut info.doc);
    info.declared = declared(marker.location());
    info
}

fn fields(fields: &[FieldDescriptor]) -> Vec<FieldInfo> {
    fields.iter().map(|field| FieldInfo::new(field.name, &field.ty.to_string(), field.doc)).collect()
}

fn declared(location: Location) -> String {
    format!("{}:{}", location.file, location.line)
}
