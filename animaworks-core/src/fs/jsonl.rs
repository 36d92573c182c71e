//! Logs that only grow: one line, one write, under a lock.

use std::{
    io::{self, Read, Seek, SeekFrom, Write},
    path::Path,
};

use serde_json::Value;

use super::{FileError, atomic::sync_dir, create_dir};

/// Appends one line durably. A torn line that an earlier crash left is closed first, so it stays alone.
///
/// # Errors
///
/// [`FileError::Io`] names the path; the file is then as it was.
pub fn append_line(path: &Path, line: &str) -> Result<(), FileError> {
    append_lines(path, std::iter::once(line))
}

/// Appends several lines in one write: after a crash either none, or a prefix of them, is there.
///
/// # Errors
///
/// [`FileError::Io`] names the path; the file is then as it was.
pub fn append_lines<'a>(path: &Path, lines: impl IntoIterator<Item = &'a str>) -> Result<(), FileError> {
    let mut block = String::new();
    for line in lines {
        debug_assert!(!line.contains('\n'), "a line is one line");
        block.push_str(line);
        block.push('\n');
    }
    if block.is_empty() {
        return Ok(());
    }
    if let Some(parent) = path.parent() {
        create_dir(parent)?;
    }
    append(path, block).map_err(|error| FileError::io("append to", path, error))
}

fn append(path: &Path, block: String) -> io::Result<()> {
    let mut file = open_locked(path)?;
    let before = file.seek(SeekFrom::End(0))?;
    let torn = before > 0 && {
        let mut last = [0_u8];
        file.seek(SeekFrom::End(-1))?;
        file.read_exact(&mut last)?;
        last != *b"\n"
    };
    let block = if torn { format!("\n{block}") } else { block };
    let written = file.write_all(block.as_bytes()).and_then(|()| file.sync_data());
    if let Err(error) = written {
        // half a line would be read as a torn one; better to have none of it
        file.set_len(before)?;
        return Err(error);
    }
    if before == 0 {
        // a new file is only there after a crash when its directory says so
        sync_dir(path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new(".")))?;
    }
    Ok(())
}

/// Opens for appending and locks; starts over when the file was moved away in between.
fn open_locked(path: &Path) -> io::Result<std::fs::File> {
    use std::os::unix::fs::MetadataExt;
    loop {
        let file = fs_err::OpenOptions::new().create(true).read(true).append(true).open(path)?.into_parts().0;
        file.lock()?;
        let ours = file.metadata()?;
        match fs_err::metadata(path) {
            Ok(theirs) if (theirs.dev(), theirs.ino()) == (ours.dev(), ours.ino()) => return Ok(file),
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
    }
}

/// One line of a log.
#[derive(Debug, Clone, PartialEq)]
pub struct JsonLine {
    /// Its number in the file, from 1.
    pub number: u32,
    /// What it says.
    pub value: Value,
}

/// Reads the objects of a log. Blank lines, torn lines and everything that is not
/// a JSON object are passed over; how many is the second value.
///
/// # Errors
///
/// [`FileError::Io`] names the path; a missing file is an empty log.
pub fn read_lines(path: &Path) -> Result<(Vec<JsonLine>, usize), FileError> {
    let Some(text) = super::read_text_if_exists(path)? else {
        return Ok((Vec::new(), 0));
    };
    let mut lines = Vec::new();
    let mut unreadable = 0;
    for (at, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() {
            continue;
        }
        match serde_json::from_str::<Value>(line) {
            Ok(value) if value.is_object() => {
                lines.push(JsonLine { number: u32::try_from(at + 1).unwrap_or(u32::MAX), value });
            }
            Ok(_) | Err(_) => unreadable += 1,
        }
    }
    Ok((lines, unreadable))
}

/// The records of a log. Lines that are none are passed over and counted in the program's log.
///
/// # Errors
///
/// As [`read_lines`].
pub fn read_records<T: serde::de::DeserializeOwned>(path: &Path) -> Result<Vec<T>, FileError> {
    let (lines, mut unreadable) = read_lines(path)?;
    let mut records = Vec::with_capacity(lines.len());
    for line in lines {
        match serde_json::from_value(line.value) {
            Ok(record) => records.push(record),
            Err(_) => unreadable += 1,
        }
    }
    if unreadable > 0 {
        tracing::warn!(path = %path.display(), unreadable, "passed over lines that are no records");
    }
    Ok(records)
}

/// A record as one line, for [`append_line`].
///
/// # Errors
///
/// [`FileError::Io`] when it cannot be written as JSON.
pub fn json_line<T: serde::Serialize>(path: &Path, record: &T) -> Result<String, FileError> {
    serde_json::to_string(record).map_err(|error| FileError::io("encode", path, io::Error::other(error)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_torn_line_is_isolated_and_passed_over() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("log/2026-03-31.jsonl");
        append_line(&path, r#"{"n":1}"#).unwrap();
        let mut file = fs_err::OpenOptions::new().append(true).open(&path).unwrap();
        file.write_all(r#"{"n":2,"te"#.as_bytes()).unwrap();
        drop(file);
        append_line(&path, r#"{"n":3}"#).unwrap();
        let (lines, unreadable) = read_lines(&path).unwrap();
        assert_eq!(
            lines.iter().map(|line| (line.number, line.value["n"].as_u64())).collect::<Vec<_>>(),
            [(1, Some(1)), (3, Some(3))]
        );
        assert_eq!(unreadable, 1);
    }

    #[test]
    fn many_writers_lose_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("log.jsonl");
        std::thread::scope(|scope| {
            for writer in 0..4 {
                let path = &path;
                scope.spawn(move || {
                    for n in 0..25 {
                        append_line(path, &format!(r#"{{"writer":{writer},"n":{n}}}"#)).unwrap();
                    }
                });
            }
        });
        assert_eq!(read_lines(&path).unwrap().0.len(), 100);
    }
}
