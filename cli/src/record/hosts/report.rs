//! The report of `record --on`: recorded and lost events, and the outcome, of each host.

use super::host::Host;
use crate::failure::Outcome;
use crate::table::{Table, number, text};
use crate::{message, output};
use anstyle::Style;
use serde_json::{Map, Value, json};
use std::io::{self, Write};
use std::path::Path;
use tracepoint_collector::Counts;

#[derive(Debug)]
pub(in crate::record) struct HostsReport {
    hosts: Vec<OneHost>,
    collected: Counts,
}

#[derive(Debug)]
struct OneHost {
    name: String,
    report: Value,
    exit_code: Option<u8>,
    failure: Option<String>,
}

impl OneHost {
    fn number(&self, name: &str) -> u64 {
        self.report[name].as_u64().unwrap_or_default()
    }

    fn lost_by_reason(&self) -> impl Iterator<Item = (&String, u64)> {
        let lost = self.report["counters"]["lost"].as_object();
        lost.into_iter().flat_map(Map::iter).filter_map(|(reason, count)| Some((reason, count.as_u64()?)))
    }

    fn how_it_ended(&self) -> String {
        match (self.exit_code, &self.failure) {
            (Some(0), _) => String::new(),
            (Some(code), _) => format!("exit code {code}"),
            (None, _) => "no report".to_owned(),
        }
    }
}

impl HostsReport {
    pub(super) fn new(hosts: Vec<Host>, collected: Counts) -> Self {
        let hosts = hosts.into_iter().map(|mut host| OneHost {
            name: std::mem::take(&mut host.name),
            report: host.report.take().unwrap_or_default(),
            exit_code: host.exit_code,
            failure: host.failure.take(),
        });
        Self { hosts: hosts.collect(), collected }
    }

    /// The worst outcome of the hosts. A host without a report may have lost events.
    pub(in crate::record) fn outcome(&self) -> Outcome {
        let of = |host: &OneHost| host.exit_code.map_or(Outcome::NotRecorded, Outcome::of_code);
        self.hosts.iter().map(of).max().unwrap_or(Outcome::Success)
    }

    pub(in crate::record) fn write_text(&self, out: &Path) -> io::Result<()> {
        let mut text_out = output::styled();
        let sum = |name: &str| self.hosts.iter().map(|host| host.number(name)).sum::<u64>();
        let hosts = message::counted(self.hosts.len() as u64, "host");
        writeln!(text_out, "{} events of {hosts}, {} lost, in {}", sum("recorded"), sum("lost"), out.display())?;
        let mut table = Table::new("  ");
        table.heading([text("HOST"), number("EVENTS"), number("LOST"), text("BY REASON"), text("")]);
        for host in &self.hosts {
            let lost: Vec<_> = host.lost_by_reason().map(|(reason, count)| format!("{count} {reason}")).collect();
            let [events, all_lost] = ["recorded", "lost"].map(|name| number(host.number(name)));
            table.row(
                Style::new(),
                [text(&host.name), events, all_lost, text(lost.join(", ")), text(host.how_it_ended())],
            );
        }
        table.write(&mut text_out)?;
        if self.collected.stored > 0 {
            writeln!(text_out, "view them with: tracectl view {}", out.display())?;
        }
        text_out.flush()?;
        for host in &self.hosts {
            if let Some(failure) = &host.failure {
                message::note(&format!("{}: {failure}", host.name));
            }
            let texts = ["failures", "notes"].into_iter().filter_map(|key| host.report[key].as_array()).flatten();
            texts.filter_map(Value::as_str).for_each(|text| message::note(&format!("{}: {text}", host.name)));
        }
        Ok(())
    }

    pub(in crate::record) fn write_json(&self, out: &Path) -> io::Result<()> {
        let hosts = self.hosts.iter().map(|host| {
            let OneHost { name, report, exit_code, failure } = host;
            json!({ "host": name, "exit_code": exit_code, "failure": failure, "report": report })
        });
        let hosts: Vec<_> = hosts.collect();
        output::json(&json!({ "path": out.to_string_lossy(), "hosts": hosts, "collected": self.collected }))
    }
}
