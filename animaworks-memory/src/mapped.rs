//! Read-only memory maps: the one module of this crate that may say `unsafe`.
//!
//! A map shows a file the way it is, without loading it: pages come when they are
//! touched and can be given back with [`Mapped::release`]. Whoever maps a file
//! promises that the mapped part is never changed again, only appended to or replaced
//! by rename; all our mapped files are written that way.

#![allow(unsafe_code, reason = "mapping files is unsafe by its nature; the promise is stated at each place")]

use std::{ops::Deref, path::Path};

use animaworks_core::fs::FileError;
use memmap2::{Mmap, MmapOptions, UncheckedAdvice};

/// A part of a file, readable as bytes.
#[derive(Debug)]
pub(crate) struct Mapped {
    // None: an empty range, which the kernel refuses to map
    map: Option<Mmap>,
}

impl Mapped {
    /// Maps a whole file.
    pub(crate) fn open(path: &Path) -> Result<Self, FileError> {
        let file = fs_err::File::open(path).map_err(|error| FileError::io("open", path, error))?;
        let len = file.metadata().map_err(|error| FileError::io("read", path, error))?.len();
        Self::range(&file, path, 0, len as usize)
    }

    /// Maps `len` bytes from `offset`; the caller has checked that the file is long enough.
    pub(crate) fn range(file: &fs_err::File, path: &Path, offset: u64, len: usize) -> Result<Self, FileError> {
        if len == 0 {
            return Ok(Self { map: None });
        }
        // SAFETY: the mapping is private to reading; mapped ranges are never written again (module promise), so the
        // bytes behind the shared reference do not change.
        let map = unsafe { MmapOptions::new().offset(offset).len(len).map(file.file()) };
        Ok(Self { map: Some(map.map_err(|error| FileError::io("map", path, error))?) })
    }

    /// Gives the pages back; touching them again reads them again.
    pub(crate) fn release(&self) -> std::io::Result<()> {
        match &self.map {
            // SAFETY: the map is read-only and backed by a file, so a dropped page comes back with the same bytes;
            // no reference can observe a difference.
            Some(map) => unsafe { map.unchecked_advise(UncheckedAdvice::DontNeed) },
            None => Ok(()),
        }
    }
}

impl Deref for Mapped {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        self.map.as_deref().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn released_pages_come_back_with_the_same_bytes() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("bytes");
        let bytes: Vec<u8> = (0..100_000_u32).flat_map(u32::to_le_bytes).collect();
        animaworks_core::fs::write_atomic(&path, &bytes, animaworks_core::fs::Privacy::Normal).unwrap();
        let map = Mapped::open(&path).unwrap();
        assert_eq!(&*map, &bytes[..]);
        map.release().unwrap();
        assert_eq!(&*map, &bytes[..]);
    }

    #[test]
    fn an_empty_file_maps_to_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("empty");
        animaworks_core::fs::write_atomic(&path, b"", animaworks_core::fs::Privacy::Normal).unwrap();
        let map = Mapped::open(&path).unwrap();
        map.release().unwrap();
        assert!(map.is_empty());
    }
}
