//! The files of one generation of an embedded index, and how they are seen.
//!
//! Columns, all append-only, little-endian:
//!
//! | file | per row |
//! |---|---|
//! | `{generation}.ids` | after a header of 32 bytes: id u64, factor f32, fine factor f32, checksum u32 |
//! | `{generation}.codes` | one signed byte per dimension |
//! | `{generation}.fine` | half a byte per dimension, when the index keeps it |
//! | `{generation}.gone` | per removal: the row's place u64 |
//!
//! A later row replaces an earlier one with the same id. What lies behind the position that the caller recorded does
//! not exist: it is overwritten by the next append.

use std::{
    collections::HashMap,
    io::{self, Seek, SeekFrom, Write},
    path::PathBuf,
    sync::Arc,
};

use animaworks_core::fs::FileError;
use pulp::{Arch, bytemuck};
use rayon::prelude::*;

use super::{
    Position, RowSet, VectorError, VectorRow,
    embedded::Precision,
    scan::{Best, Probe, Ranked, fine_value, quantise},
};
use crate::mapped::Mapped;

const MAGIC: &[u8; 8] = b"AWVEC001";
const HEADER: u64 = 32;
const ID_BYTES: usize = 20;
const GONE_BYTES: u64 = 8;
/// Rows per map: a full window is mapped once and kept while the last one grows.
const WINDOW: u64 = 32_768;
/// Rows compared before their results are looked at.
const BLOCK: usize = 512;
/// From here on a search uses all threads.
const PARALLEL_ROWS: u64 = 16_384;

/// What every file of an index agrees on.
#[derive(Debug, Clone)]
pub(super) struct Shape {
    pub(super) dir: PathBuf,
    pub(super) dimensions: usize,
    pub(super) precision: Precision,
}

impl Shape {
    fn path(&self, generation: u64, column: &str) -> PathBuf {
        self.dir.join(format!("{generation:08}.{column}"))
    }

    fn fine_bytes(&self) -> usize {
        match self.precision {
            Precision::Coarse => 0,
            Precision::Fine => self.dimensions.div_ceil(2),
        }
    }

    fn header(&self) -> [u8; HEADER as usize] {
        let mut header = [0; HEADER as usize];
        header[..8].copy_from_slice(MAGIC);
        header[8..12].copy_from_slice(&(self.dimensions as u32).to_le_bytes());
        header[12] = self.precision as u8;
        header
    }

    fn corrupt(&self, generation: u64, column: &str, problem: impl Into<String>) -> VectorError {
        VectorError::Corrupt { path: self.path(generation, column), problem: problem.into() }
    }

    /// Appends rows and removals behind `at` and makes them durable.
    pub(super) fn append(&self, at: Position, rows: &[VectorRow], gone: &[u64]) -> Result<Position, VectorError> {
        animaworks_core::fs::create_dir(&self.dir)?;
        let fine_bytes = self.fine_bytes();
        let mut ids = Vec::with_capacity(rows.len() * ID_BYTES);
        let mut codes = Vec::with_capacity(rows.len() * self.dimensions);
        let mut fine = Vec::with_capacity(rows.len() * fine_bytes);
        for row in rows {
            let quantised = quantise(&row.vector);
            let coarse: &[u8] = bytemuck::cast_slice(&quantised.coarse);
            let kept = &quantised.fine[..fine_bytes];
            ids.extend_from_slice(&row.id.to_le_bytes());
            ids.extend_from_slice(&quantised.factor.to_le_bytes());
            ids.extend_from_slice(&quantised.fine_factor.to_le_bytes());
            ids.extend_from_slice(&checksum(row.id, coarse, kept).to_le_bytes());
            codes.extend_from_slice(coarse);
            fine.extend_from_slice(kept);
        }
        self.extend_column(at.generation, "codes", at.rows * self.dimensions as u64, &codes)?;
        if fine_bytes > 0 {
            self.extend_column(at.generation, "fine", at.rows * fine_bytes as u64, &fine)?;
        }
        let gone_bytes: Vec<u8> = gone.iter().flat_map(|slot| slot.to_le_bytes()).collect();
        self.extend_column(at.generation, "gone", at.removed * GONE_BYTES, &gone_bytes)?;
        let mut first = Vec::new();
        let ids_at = if at.rows == 0 {
            first.extend_from_slice(&self.header());
            0
        } else {
            HEADER + at.rows * ID_BYTES as u64
        };
        first.extend_from_slice(&ids);
        self.extend_column(at.generation, "ids", ids_at, &first)?;
        Ok(Position {
            generation: at.generation,
            rows: at.rows + rows.len() as u64,
            removed: at.removed + gone.len() as u64,
        })
    }

    // core::fs knows whole files and lines; a column is neither
    fn extend_column(&self, generation: u64, column: &str, at: u64, bytes: &[u8]) -> Result<(), FileError> {
        let path = self.path(generation, column);
        let write = || -> io::Result<()> {
            let fresh = fs_err::symlink_metadata(&path).is_err();
            if bytes.is_empty() && !fresh {
                return Ok(());
            }
            let mut file = fs_err::OpenOptions::new().create(true).truncate(false).write(true).open(&path)?;
            file.set_len(at)?;
            file.seek(SeekFrom::Start(at))?;
            file.write_all(bytes)?;
            file.sync_data()?;
            if fresh {
                fs_err::File::open(&self.dir)?.sync_all()?;
            }
            Ok(())
        };
        write().map_err(|error| FileError::io("append to", &path, error))
    }

    /// Removes the files of every other generation.
    pub(super) fn sweep(&self, keep: u64) -> Result<(), FileError> {
        let list = match fs_err::read_dir(&self.dir) {
            Ok(list) => list,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(error) => return Err(FileError::io("list", &self.dir, error)),
        };
        for entry in list {
            let path = entry.map_err(|error| FileError::io("list", &self.dir, error))?.path();
            let generation = path.file_stem().and_then(|stem| stem.to_str()).and_then(|stem| stem.parse::<u64>().ok());
            if generation.is_some_and(|generation| generation != keep) {
                animaworks_core::fs::remove_if_exists(&path)?;
            }
        }
        Ok(())
    }

    /// Size of a generation on disk.
    pub(super) fn bytes(&self, generation: u64) -> u64 {
        ["ids", "codes", "fine", "gone"]
            .iter()
            .filter_map(|column| fs_err::metadata(self.path(generation, column)).ok())
            .map(|metadata| metadata.len())
            .sum()
    }

    fn open_column(&self, position: Position, column: &str, needed: u64) -> Result<fs_err::File, VectorError> {
        let path = self.path(position.generation, column);
        let file = match fs_err::File::open(&path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Err(self.corrupt(position.generation, column, "the file is missing"));
            }
            Err(error) => return Err(FileError::io("open", &path, error).into()),
        };
        let len = file.metadata().map_err(|error| FileError::io("read", &path, error))?.len();
        if len < needed {
            let problem = format!("{len} bytes, {needed} were recorded");
            return Err(self.corrupt(position.generation, column, problem));
        }
        Ok(file)
    }
}

fn checksum(id: u64, coarse: &[u8], fine: &[u8]) -> u32 {
    let bytes = id.to_le_bytes();
    bytes
        .iter()
        .chain(coarse)
        .chain(fine)
        .fold(0x811c_9dc5_u32, |hash, byte| (hash ^ u32::from(*byte)).wrapping_mul(0x0100_0193))
}

/// Some rows of a generation, mapped.
#[derive(Debug)]
struct Window {
    first: u64,
    rows: u64,
    ids: Mapped,
    codes: Mapped,
    fine: Option<Mapped>,
}

/// One row's entry in the column of ids.
#[derive(Debug, Clone, Copy)]
struct Entry {
    id: u64,
    factor: f32,
    fine_factor: f32,
    check: u32,
}

impl Window {
    fn entry(&self, within: usize) -> Entry {
        let mut bytes = [0; ID_BYTES];
        bytes.copy_from_slice(&self.ids[within * ID_BYTES..(within + 1) * ID_BYTES]);
        let [i0, i1, i2, i3, i4, i5, i6, i7, f0, f1, f2, f3, g0, g1, g2, g3, c0, c1, c2, c3] = bytes;
        Entry {
            id: u64::from_le_bytes([i0, i1, i2, i3, i4, i5, i6, i7]),
            factor: f32::from_le_bytes([f0, f1, f2, f3]),
            fine_factor: f32::from_le_bytes([g0, g1, g2, g3]),
            check: u32::from_le_bytes([c0, c1, c2, c3]),
        }
    }

    fn coarse(&self, within: usize, dimensions: usize) -> &[i8] {
        bytemuck::cast_slice(&self.codes[within * dimensions..(within + 1) * dimensions])
    }

    fn fine(&self, within: usize, dimensions: usize) -> &[u8] {
        let bytes = dimensions.div_ceil(2);
        self.fine.as_ref().map_or(&[], |fine| &fine[within * bytes..(within + 1) * bytes])
    }
}

/// What readers see: the rows of one published position.
#[derive(Debug)]
pub(super) struct Snapshot {
    shape: Shape,
    pub(super) position: Position,
    windows: Vec<Arc<Window>>,
    alive: Vec<u64>,
    pub(super) live: u64,
}

/// Ids of live rows and their places.
pub(super) type Slots = HashMap<u64, u32>;

impl Snapshot {
    /// Nothing yet.
    pub(super) fn empty(shape: &Shape, generation: u64) -> Self {
        let position = Position { generation, ..Position::default() };
        Self { shape: shape.clone(), position, windows: Vec::new(), alive: Vec::new(), live: 0 }
    }

    /// Opens what a position covers.
    pub(super) fn open(shape: &Shape, position: Position) -> Result<(Self, Slots), VectorError> {
        // a position that is wrong is only found out further down
        let mut slots = Slots::with_capacity(position.rows.min(1 << 22) as usize);
        let empty = Self::empty(shape, position.generation);
        if position.rows == 0 {
            return Ok((Self { position, ..empty }, slots));
        }
        let path = shape.path(position.generation, "gone");
        let gone_len = position.removed * GONE_BYTES;
        let file = shape.open_column(position, "gone", gone_len)?;
        let gone_bytes = Mapped::range(&file, &path, 0, gone_len as usize)?;
        let gone: Vec<u64> = gone_bytes.as_chunks::<8>().0.iter().map(|bytes| u64::from_le_bytes(*bytes)).collect();
        let snapshot = empty.grown(position, &gone, &mut slots)?;
        snapshot.release_ids();
        Ok((snapshot, slots))
    }

    /// The view after a later position of the same generation; `slots` follows.
    pub(super) fn grown(&self, to: Position, gone: &[u64], slots: &mut Slots) -> Result<Self, VectorError> {
        let shape = &self.shape;
        if u32::try_from(to.rows).is_err() {
            return Err(shape.corrupt(to.generation, "ids", "more rows than an index can hold"));
        }
        let windows = self.map_windows(to)?;
        let mut alive = self.alive.clone();
        alive.resize(to.rows.div_ceil(64) as usize, 0);
        let mut live = self.live;
        for slot in self.position.rows..to.rows {
            let window = &windows[(slot / WINDOW) as usize];
            let id = window.entry((slot - window.first) as usize).id;
            alive[(slot / 64) as usize] |= 1 << (slot % 64);
            live += 1;
            if let Some(old) = slots.insert(id, slot as u32) {
                live -= clear(&mut alive, u64::from(old));
            }
        }
        for slot in gone {
            if *slot >= to.rows {
                return Err(shape.corrupt(to.generation, "gone", format!("row {slot} was never written")));
            }
            live -= clear(&mut alive, *slot);
            let window = &windows[(slot / WINDOW) as usize];
            let id = window.entry((slot - window.first) as usize).id;
            if slots.get(&id).is_some_and(|current| u64::from(*current) == *slot) {
                slots.remove(&id);
            }
        }
        Ok(Self { shape: shape.clone(), position: to, windows, alive, live })
    }

    fn map_windows(&self, to: Position) -> Result<Vec<Arc<Window>>, VectorError> {
        let shape = &self.shape;
        let full = self.windows.iter().take_while(|window| window.rows == WINDOW);
        let mut windows: Vec<Arc<Window>> = full.cloned().collect();
        if to.rows == self.position.rows {
            return Ok(self.windows.clone());
        }
        let (dimensions, fine_bytes) = (shape.dimensions as u64, shape.fine_bytes() as u64);
        let ids = shape.open_column(to, "ids", HEADER + to.rows * ID_BYTES as u64)?;
        let codes = shape.open_column(to, "codes", to.rows * dimensions)?;
        let path = |column| shape.path(to.generation, column);
        if *Mapped::range(&ids, &path("ids"), 0, HEADER as usize)? != shape.header() {
            let problem = "the header is not that of this index: another version, model or precision";
            return Err(shape.corrupt(to.generation, "ids", problem));
        }
        let fine = match shape.precision {
            Precision::Coarse => None,
            Precision::Fine => Some(shape.open_column(to, "fine", to.rows * fine_bytes)?),
        };
        let mut first = windows.len() as u64 * WINDOW;
        while first < to.rows {
            let rows = WINDOW.min(to.rows - first);
            let map = |file: &fs_err::File, column, header: u64, width: u64| {
                Mapped::range(file, &path(column), header + first * width, (rows * width) as usize)
            };
            windows.push(Arc::new(Window {
                first,
                rows,
                ids: map(&ids, "ids", HEADER, ID_BYTES as u64)?,
                codes: map(&codes, "codes", 0, dimensions)?,
                fine: fine.as_ref().map(|file| map(file, "fine", 0, fine_bytes)).transpose()?,
            }));
            first += rows;
        }
        Ok(windows)
    }

    fn is_alive(&self, slot: u64) -> bool {
        self.alive[(slot / 64) as usize] >> (slot % 64) & 1 == 1
    }

    /// The `k` best rows.
    pub(super) fn search(&self, query: &[f32], k: usize, allow: Option<&RowSet>) -> Vec<Ranked> {
        let k = k.min(self.live as usize);
        if k == 0 {
            return Vec::new();
        }
        // near-ties that 8 bits cannot tell apart lie within a few places
        let wanted = match self.shape.precision {
            Precision::Coarse => k,
            Precision::Fine => 2 * k + 32,
        };
        let probe = Probe::new(query);
        let arch = Arch::new();
        let scan = |window: &Arc<Window>| self.scan(window, &probe, arch, wanted, allow);
        let best = if self.position.rows < PARALLEL_ROWS {
            self.windows.iter().map(scan).fold(Best::new(wanted), Best::merge)
        } else {
            self.windows.par_iter().map(scan).reduce(|| Best::new(wanted), Best::merge)
        };
        let mut best = best.into_sorted();
        if self.shape.precision == Precision::Fine {
            for hit in &mut best {
                let window = &self.windows[(hit.slot / WINDOW) as usize];
                let within = (hit.slot - window.first) as usize;
                let (coarse, fine) =
                    (window.coarse(within, self.shape.dimensions), window.fine(within, self.shape.dimensions));
                hit.cosine = probe.exact_product(coarse, fine) * window.entry(within).fine_factor;
            }
            best.sort();
            best.truncate(k);
        }
        best
    }

    fn scan(&self, window: &Window, probe: &Probe, arch: Arch, wanted: usize, allow: Option<&RowSet>) -> Best {
        let mut best = Best::new(wanted);
        let mut products = Vec::with_capacity(BLOCK);
        let codes: &[i8] = bytemuck::cast_slice(&window.codes);
        for (block, rows) in codes.chunks(BLOCK * self.shape.dimensions).enumerate() {
            probe.products(arch, rows, &mut products);
            let mut floor = best.floor();
            for (at, product) in products.iter().enumerate() {
                let within = block * BLOCK + at;
                let entry = window.entry(within);
                let cosine = product * entry.factor;
                let slot = window.first + within as u64;
                if cosine >= floor && self.is_alive(slot) && allow.is_none_or(|allow| allow.contains(entry.id)) {
                    best.push(Ranked { cosine, id: entry.id, slot });
                    floor = best.floor();
                }
            }
        }
        best
    }

    /// A row as exact as it is stored.
    pub(super) fn vector(&self, slot: u32) -> Option<Vec<f32>> {
        let slot = u64::from(slot);
        let window = self.windows.get((slot / WINDOW) as usize)?;
        let within = usize::try_from(slot - window.first).ok().filter(|within| (*within as u64) < window.rows)?;
        let (coarse, fine) = (window.coarse(within, self.shape.dimensions), window.fine(within, self.shape.dimensions));
        let entry = window.entry(within);
        let factor = if fine.is_empty() { entry.factor } else { entry.fine_factor };
        Some(coarse.iter().enumerate().map(|(at, code)| fine_value(*code, fine, at) * factor).collect())
    }

    /// Copies the live rows, codes untouched, into the files of another generation.
    pub(super) fn copy_live(&self, generation: u64) -> Result<Position, VectorError> {
        let shape = &self.shape;
        let (mut ids, mut codes, mut fine) = (shape.header().to_vec(), Vec::new(), Vec::new());
        let mut at = [0_u64; 3];
        let mut rows = 0;
        let flush = |ids: &mut Vec<u8>, codes: &mut Vec<u8>, fine: &mut Vec<u8>, at: &mut [u64; 3]| {
            for (place, (column, bytes)) in [("codes", codes), ("fine", fine), ("ids", ids)].into_iter().enumerate() {
                if column != "fine" || shape.precision == Precision::Fine {
                    shape.extend_column(generation, column, at[place], bytes)?;
                }
                at[place] += bytes.len() as u64;
                bytes.clear();
            }
            Ok::<(), FileError>(())
        };
        shape.sweep(self.position.generation)?;
        shape.extend_column(generation, "gone", 0, &[])?;
        for window in &self.windows {
            for within in 0..window.rows as usize {
                if !self.is_alive(window.first + within as u64) {
                    continue;
                }
                let entry = window.entry(within);
                let coarse: &[u8] = bytemuck::cast_slice(window.coarse(within, shape.dimensions));
                let fine_part = window.fine(within, shape.dimensions);
                if checksum(entry.id, coarse, fine_part) != entry.check {
                    let problem = format!("row {} does not match its checksum", entry.id);
                    return Err(shape.corrupt(self.position.generation, "codes", problem));
                }
                ids.extend_from_slice(&window.ids[within * ID_BYTES..(within + 1) * ID_BYTES]);
                codes.extend_from_slice(coarse);
                fine.extend_from_slice(fine_part);
                rows += 1;
            }
            flush(&mut ids, &mut codes, &mut fine, &mut at)?;
        }
        flush(&mut ids, &mut codes, &mut fine, &mut at)?;
        Ok(Position { generation, rows, removed: 0 })
    }

    /// Gives all pages back.
    pub(super) fn release(&self) -> io::Result<()> {
        for window in &self.windows {
            for map in [Some(&window.ids), Some(&window.codes), window.fine.as_ref()].into_iter().flatten() {
                map.release()?;
            }
        }
        Ok(())
    }

    // opening reads every id once; nobody needs those pages again soon
    fn release_ids(&self) {
        use animaworks_core::ResultExt as _;
        for window in &self.windows {
            window.ids.release().ignore("pages that stay only cost memory");
        }
    }
}

/// Clears a bit; how many were set.
fn clear(alive: &mut [u64], slot: u64) -> u64 {
    let word = &mut alive[(slot / 64) as usize];
    let was = *word >> (slot % 64) & 1;
    *word &= !(1 << (slot % 64));
    was
}
