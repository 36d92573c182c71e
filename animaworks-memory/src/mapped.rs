//! Read-only memory maps: the one module of this crate that may say `unsafe`.
//!
//! A map shows a file the way it is, without loading it: pages come when they are
//! touched and can be given back with [`Mapped::release`]. Whoever maps a file
//! promises that the mapped part is never changed again, only appended to or replaced
//! by rename; all our mapped files are written that way.

#![allow(unsafe_code, reason = "mapping files is unsafe by its nature; the promise is stated at each place")]

use std::{ops::Deref, path::Path, ptr::NonNull};

use animaworks_core::fs::FileError;
use memmap2::{Mmap, MmapOptions, UncheckedAdvice};
use nix::sys::mman::{MmapAdvise, madvise};

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

/// Gives back the pages of the program's own code, for a process that will wait: what runs next comes back page by
/// page from the machine's file cache. Does nothing where the kernel does not show its maps, or under a debugger,
/// whose breakpoints live in those pages.
pub(crate) fn release_code() -> std::io::Result<()> {
    if !cfg!(target_os = "linux") {
        return Ok(());
    }
    let status = fs_err::read_to_string("/proc/self/status")?;
    if !status.lines().any(|line| line.strip_prefix("TracerPid:").is_some_and(|pid| pid.trim() == "0")) {
        return Ok(());
    }
    let program = std::env::current_exe()?;
    let maps = fs_err::read_to_string("/proc/self/maps")?;
    for (start, len) in maps.lines().filter_map(|line| code_of(line, &program)) {
        let Some(start) = NonNull::new(std::ptr::with_exposed_provenance_mut(start)) else { continue };
        // SAFETY: the range is private, not writable and backed by the program's file, and nobody traces this process,
        // so every page in it is as it is in the file and comes back with the same bytes.
        unsafe { madvise(start, len, MmapAdvise::MADV_DONTNEED) }?;
    }
    Ok(())
}

/// Where a line of the kernel's map shows code of a program: its start and length in bytes.
fn code_of(line: &str, program: &Path) -> Option<(usize, usize)> {
    let mut words = line.split_ascii_whitespace();
    let (range, rights) = (words.next()?, words.next()?);
    if rights != "r-xp" || Path::new(words.nth(3)?) != program {
        return None;
    }
    let (start, end) = range.split_once('-')?;
    let (start, end) = (usize::from_str_radix(start, 16).ok()?, usize::from_str_radix(end, 16).ok()?);
    Some((start, end.checked_sub(start)?))
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
    fn only_the_code_of_this_program_is_given_back() {
        let program = Path::new("/opt/animaworks");
        let code = "55d0c0a18000-55d0c2160000 r-xp 00a18000 fe:00 1234                       /opt/animaworks";
        assert_eq!(code_of(code, program), Some((0x55d0_c0a1_8000, 0x174_8000)));
        for other in [
            "55d0c2160000-55d0c2384000 r--p 02160000 fe:00 1234                       /opt/animaworks",
            "7f0000000000-7f0000001000 r-xp 00000000 fe:00 99                         /usr/lib/libc.so.6",
            "7ffd00000000-7ffd00002000 r-xp 00000000 00:00 0                          [vdso]",
            "7ffd00000000-7ffd00002000 r-xp 00000000 00:00 0",
            "",
        ] {
            assert_eq!(code_of(other, program), None, "{other}");
        }
        release_code().unwrap();
        assert_eq!(code_of(code, program).map(|(_, len)| len), Some(0x174_8000), "what was given back runs on");
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
