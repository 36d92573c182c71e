//! Who reports to whom, from the `supervisor` fields of the `status.json` files.

use crate::{fs::FileError, ids::AnimaName, layout::DataDir};

/// The Animas of an organisation, in the order of their names. Directories whose name is no Anima's name are passed over.
///
/// # Errors
///
/// [`FileError::Io`] when the directory cannot be listed; a missing one has nobody in it.
pub fn names(data: &DataDir) -> Result<Vec<AnimaName>, FileError> {
    let animas = data.animas();
    let list = match fs_err::read_dir(&animas) {
        Ok(list) => list,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(FileError::io("list", &animas, error)),
    };
    let mut names = Vec::new();
    for entry in list {
        let entry = entry.map_err(|error| FileError::io("list", &animas, error))?;
        if let Ok(name) = AnimaName::new(entry.file_name().to_string_lossy())
            && entry.path().is_dir()
        {
            names.push(name);
        }
    }
    names.sort();
    Ok(names)
}
