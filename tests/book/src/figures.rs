//! The README's table of costs, and the table of processors in `docs/costs.md`: selections from the tables that `scripts/peers.sh --docs` writes
//! there for each kind of processor.

use std::fmt::Write;

/// The line before the README's generated block.
pub const BEGIN: &str = "<!-- figures: begin; written by scripts/figures.sh from docs/costs.md -->\n";
/// The line after it.
pub const END: &str = "<!-- figures: end -->";

/// The line before the table of processors in `docs/costs.md`.
pub const PROCESSORS_BEGIN: &str = "<!-- processors: begin; written by scripts/figures.sh from the tables below -->\n";
/// The line after it.
pub const PROCESSORS_END: &str = "<!-- processors: end -->";

/// The columns: a heading, and the variants of `benches/peers` with its figures.
const TRACERS: [(&str, Variants); 4] = [
    (
        "tracepoint",
        Variants {
            off: "`ours-lazy`",
            on: "`ours-1-probe`",
            recorded: Some("`ours-session`"),
            system: Some("`session`"),
        },
    ),
    (
        "`tracing`",
        Variants { off: "`tracing`", on: "`tracing-visit`", recorded: Some("`tracing-appender`"), system: None },
    ),
    (
        "LTTng-UST",
        Variants {
            off: "`lttng`",
            on: "`lttng-callback`",
            recorded: Some("`lttng-discard`"),
            system: Some("LTTng-UST"),
        },
    ),
    ("USDT", Variants { off: "`usdt`", on: "`usdt-uprobe`", recorded: None, system: None }),
];

struct Variants {
    off: &'static str,
    on: &'static str,
    recorded: Option<&'static str>,
    /// The column in the table of systems.
    system: Option<&'static str>,
}

/// The README's block between [`BEGIN`] and [`END`], made from the text of `docs/costs.md`.
///
/// # Errors
///
/// If a figure is missing; the message names its table and row.
pub fn table(costs: &str) -> Result<String, String> {
    let processors = processors(costs)?;
    let mut text = String::new();
    let mut row = |label: &str, figure: &dyn Fn(&Variants) -> Result<String, String>| {
        write!(text, "| {label} |").expect("a String takes everything");
        for (_, variants) in &TRACERS {
            write!(text, " {} |", figure(variants)?).expect("a String takes everything");
        }
        text.push('\n');
        Ok::<_, String>(())
    };
    row("off: instructions at a site", &|variants| {
        // The same program everywhere, so the same number.
        let figure = cell(part(costs, "peers", processors[0])?, "off", variants.off, "instructions")?;
        Ok(figure.trim_start_matches('+').to_owned())
    })?;
    // One figure for each processor.
    let each = |figure: &dyn Fn(&str) -> Result<String, String>| {
        Ok(processors.iter().map(|processor| figure(processor)).collect::<Result<Vec<_>, String>>()?.join(", "))
    };
    row("recorded: times the floor", &|variants| {
        optional(variants.recorded, |variant| {
            each(&|processor| {
                let sites = part(costs, "peers", processor)?;
                first_number(cell(sites, "recorded", variant, "tight, over the floor (95 %)")?, 2)
            })
        })
    })?;
    row("on, calling one function: ns", &|variants| {
        each(&|processor| first_number(cell(part(costs, "peers", processor)?, "on", variants.on, "tight, ns")?, 1))
    })?;
    row("recorded without a loss: million events/s", &|variants| {
        optional(variants.system, |column| {
            each(&|processor| {
                let systems = part(costs, "systems", processor)?;
                first_number(cell(systems, "systems", "lossless rate of 1 thread, M/s", column)?, 1)
            })
        })
    })?;
    let headings = TRACERS.map(|(heading, _)| heading).join(" | ");
    let kinds = processors.iter().map(|processor| short(processor)).collect::<Vec<_>>().join(", ");
    Ok(format!("| {kinds} | {headings} |\n|---|{}\n{text}", "---|".repeat(TRACERS.len())))
}

/// The variants of the table of processors.
const COMPARED: [&str; 10] = [
    "ours",
    "ours-text",
    "ours-session",
    "ours-session-text",
    "tracing-ring",
    "ticklog",
    "dial9-record",
    "lttng-snapshot",
    "lttng-discard",
    "tracing-appender",
];

/// The block of `docs/costs.md` between [`PROCESSORS_BEGIN`] and [`PROCESSORS_END`]: the times of recorded events by processor, a selection from the
/// tables below it.
///
/// # Errors
///
/// As for [`table`].
pub fn by_processor(costs: &str) -> Result<String, String> {
    let processors = processors(costs)?;
    let columns = processors.iter().map(|processor| short(processor)).collect::<Vec<_>>().join(" | ");
    let mut text = format!("| recorded: tight, isolated | {columns} |\n|---|{}\n", "---|".repeat(processors.len()));
    let mut row = |label: &str, variant: &str, columns: [&str; 2], digits| {
        write!(text, "| {label} |").expect("a String takes everything");
        for processor in &processors {
            let sites = part(costs, "peers", processor)?;
            let figures = columns.map(|column| first_number(cell(sites, "recorded", variant, column)?, digits));
            let [tight, isolated] = figures;
            write!(text, " {}, {} |", tight?, isolated?).expect("a String takes everything");
        }
        text.push('\n');
        Ok::<_, String>(())
    };
    row("the floor, ns", "`floor`", ["tight, ns", "isolated, ns"], 1)?;
    for variant in COMPARED {
        let columns = ["tight, over the floor (95 %)", "isolated, over the floor (95 %)"];
        row(&format!("`{variant}`, times the floor"), &format!("`{variant}`"), columns, 2)?;
    }
    Ok(text)
}

fn optional<T>(value: Option<T>, figure: impl FnOnce(T) -> Result<String, String>) -> Result<String, String> {
    value.map_or_else(|| Ok("–".to_owned()), figure)
}

/// The number at the beginning of a cell, which may be followed by its interval.
fn first_number(cell: &str, digits: usize) -> Result<String, String> {
    let number = cell.split(' ').next().unwrap_or(cell);
    let value: f64 = number.parse().map_err(|_| format!("`{cell}` in docs/costs.md is no number"))?;
    Ok(format!("{value:.digits$}"))
}

/// The text of `docs/costs.md` between the marks of a section that `scripts/peers.sh --docs` writes.
fn section<'t>(costs: &'t str, name: &str) -> Result<&'t str, String> {
    let begin = format!("<!-- {name}: begin; written by scripts/peers.sh --docs -->");
    let rest = costs.split_once(&begin).and_then(|(_, rest)| rest.split_once(&format!("<!-- {name}: end -->")));
    rest.map(|(section, _)| section).ok_or_else(|| format!("docs/costs.md has no section `{name}`"))
}

/// The beginning of the heading of a part, which is about one kind of processor.
const PART: &str = "\n### ";

/// The kinds of processors with tables of sites.
fn processors(costs: &str) -> Result<Vec<&str>, String> {
    let parts = section(costs, "peers")?.split(PART).skip(1);
    let kinds: Vec<_> = parts.filter_map(|part| part.lines().next()).collect();
    if kinds.is_empty() { Err("docs/costs.md has no tables of a processor".to_owned()) } else { Ok(kinds) }
}

/// The part of a section about one kind of processor.
fn part<'t>(costs: &'t str, name: &str, processor: &str) -> Result<&'t str, String> {
    let mut parts = section(costs, name)?.split(PART).skip(1);
    parts
        .find(|part| part.lines().next() == Some(processor))
        .ok_or_else(|| format!("the section `{name}` of docs/costs.md has no tables of {processor}"))
}

/// The name of a kind of processor for a table: `AMD EPYC 26/2` for `AMD EPYC (family 26 model 2)`.
fn short(processor: &str) -> String {
    processor
        .replace("(R)", "")
        .replace(" Processor", "")
        .replace("(family ", "")
        .replace(" model ", "/")
        .replace(')', "")
}

/// The cell in the column `column` and the row `first` of the table in `part` whose first heading is `table`.
fn cell<'t>(part: &'t str, table: &str, first: &str, column: &str) -> Result<&'t str, String> {
    let cells = |line: &'t str| line.trim_matches('|').split('|').map(str::trim);
    let start = format!("| {table} |");
    let mut lines = part.lines().zip(part.lines().skip(1));
    let heading = lines.find(|(line, next)| line.starts_with(&start) && next.starts_with("|---"));
    let (heading, _) = heading.ok_or_else(|| format!("docs/costs.md has no table `{table}`"))?;
    let index = cells(heading).position(|name| name == column);
    let index = index.ok_or_else(|| format!("the table `{table}` of docs/costs.md has no column `{column}`"))?;
    lines
        .map(|(line, _)| line)
        .take_while(|line| line.starts_with('|'))
        .find(|line| line.starts_with(&format!("| {first} |")))
        .and_then(|line| cells(line).nth(index))
        .ok_or_else(|| format!("the table `{table}` of docs/costs.md has no row `{first}`"))
}

/// `readme` with its block replaced.
///
/// # Errors
///
/// If the README has no such block, or `costs` lacks a figure.
pub fn put(readme: &str, costs: &str) -> Result<String, String> {
    put_between(readme, BEGIN, END, &table(costs)?)
}

/// `costs` with its table of processors replaced.
///
/// # Errors
///
/// If `costs` has no such block, or lacks a figure.
pub fn put_by_processor(costs: &str) -> Result<String, String> {
    put_between(costs, PROCESSORS_BEGIN, PROCESSORS_END, &by_processor(costs)?)
}

fn put_between(page: &str, begin: &str, end: &str, block: &str) -> Result<String, String> {
    let missing = |mark: &str| format!("the page has no line `{}`", mark.trim_end());
    let (before, rest) = page.split_once(begin).ok_or_else(|| missing(begin))?;
    let (_, after) = rest.split_once(end).ok_or_else(|| missing(end))?;
    Ok(format!("{before}{begin}{block}{end}{after}"))
}
