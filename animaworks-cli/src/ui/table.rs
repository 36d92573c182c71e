//! Tables that keep their columns in Japanese, too.

use comfy_table::{ContentArrangement, Table, presets};

use super::line;
use crate::error::CliResult;

/// Prints rows under their headings.
pub(crate) fn print(headings: &[String], rows: Vec<Vec<String>>) -> CliResult {
    let mut table = Table::new();
    table.load_preset(presets::NOTHING).set_content_arrangement(ContentArrangement::Dynamic).set_header(headings);
    for row in rows {
        table.add_row(row);
    }
    line(table.lines().map(|text| text.trim_end().to_owned()).collect::<Vec<_>>().join("\n"))
}
