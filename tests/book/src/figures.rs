//! The README's table of costs: a selection from the tables that `scripts/peers.sh --docs` writes into `docs/costs.md`.

use std::fmt::Write;

/// The line before the README's generated block.
pub const BEGIN: &str = "<!-- figures: begin; written by scripts/figures.sh from docs/costs.md -->\n";
/// The line after it.
pub const END: &str = "<!-- figures: end -->";

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
        Ok(cell(costs, "off", variants.off, "instructions")?.trim_start_matches('+').to_owned())
    })?;
    row("on, calling one function: ns", &|variants| nanoseconds(costs, "on", variants.on))?;
    row("recorded, 16 bytes of fields: ns", &|variants| {
        variants.recorded.map_or_else(|| Ok("–".to_owned()), |variant| nanoseconds(costs, "recorded", variant))
    })?;
    row("recorded without a loss: million events/s", &|variants| {
        let column = variants.system.map(|column| cell(costs, "systems", "lossless rate of 1 thread, M/s", column));
        column.map_or_else(|| Ok("–".to_owned()), |figure| figure.map(str::to_owned))
    })?;
    let headings = TRACERS.map(|(heading, _)| heading).join(" | ");
    Ok(format!("| | {headings} |\n|---|{}\n{text}", "---|".repeat(TRACERS.len())))
}

fn nanoseconds(costs: &str, table: &str, variant: &str) -> Result<String, String> {
    let text = cell(costs, table, variant, "tight, ns")?;
    let value: f64 = text.parse().map_err(|_| format!("`{text}` of {variant} in `{table}` is no number"))?;
    Ok(format!("{value:.1}"))
}

/// The cell in the column `column` and the row `first` of the table whose first heading is `table`.
fn cell<'t>(costs: &'t str, table: &str, first: &str, column: &str) -> Result<&'t str, String> {
    let cells = |line: &'t str| line.trim_matches('|').split('|').map(str::trim);
    let start = format!("| {table} |");
    let mut lines = costs.lines().zip(costs.lines().skip(1));
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
    let (before, rest) =
        readme.split_once(BEGIN).ok_or_else(|| format!("README.md has no line `{}`", BEGIN.trim_end()))?;
    let (_, after) = rest.split_once(END).ok_or_else(|| format!("README.md has no line `{END}`"))?;
    Ok(format!("{before}{BEGIN}{}{END}{after}", table(costs)?))
}
