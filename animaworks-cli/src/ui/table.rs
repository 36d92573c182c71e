//! Tables that keep their columns in Japanese, too.

use comfy_table::{ContentArrangement, Table, TableStyle};

use super::line;
use crate::error::CliResult;

/// Prints rows under their headings.
pub(crate) fn print(headings: &[String], rows: Vec<Vec<String>>) -> CliResult {
    let mut table = Table::new();
    *table.style_mut() = TableStyle::new();
    table.set_content_arrangement(ContentArrangement::Dynamic).set_header(headings);
    for row in rows {
        table.add_row(row);
    }
    for column in table.column_iter_mut() {
        column.set_padding((0, 2));
    }
    line(table.lines().map(|text| text.trim_end().to_owned()).collect::<Vec<_>>().join("\n"))
}
