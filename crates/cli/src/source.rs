//! Reading files named on the command line, with one sentence for each failure.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;

use anyhow::{Context as _, bail};
use model::limits;

/// A file of documents.
#[derive(Debug)]
pub(crate) enum SourceText {
    /// Its text.
    Text(String),
    /// It was read, but it cannot hold documents: too long, or not text.
    Unusable(String),
}

/// Reads a file of documents; `-` is standard input.
pub(crate) fn documents(path: &Path) -> anyhow::Result<SourceText> {
    let bytes = if path == Path::new("-") {
        // Bounded like a file: a pipe may never end.
        read_up_to(io::stdin().lock(), limits::FILE_BYTES_MAX)
            .context("could not read standard input")?
    } else {
        read_up_to(open(path)?, limits::FILE_BYTES_MAX)
            .with_context(|| format!("could not read `{}`", path.display()))?
    };
    if bytes.len() > limits::FILE_BYTES_MAX {
        let max = limits::FILE_BYTES_MAX >> 20;
        return Ok(SourceText::Unusable(format!(
            "the file is longer than {max} MiB"
        )));
    }
    match String::from_utf8(bytes) {
        Ok(text) => Ok(SourceText::Text(text)),
        Err(error) => {
            let at = error.utf8_error().valid_up_to();
            Ok(SourceText::Unusable(format!(
                "the file is not UTF-8 text: byte {at} cannot be read"
            )))
        }
    }
}

/// Reads a settings or variables file.
pub(crate) fn small_text(path: &Path) -> anyhow::Result<String> {
    let bytes = read_up_to(open(path)?, limits::CONFIG_BYTES_MAX)
        .with_context(|| format!("could not read `{}`", path.display()))?;
    if bytes.len() > limits::CONFIG_BYTES_MAX {
        bail!(
            "`{}` is longer than {} KiB",
            path.display(),
            limits::CONFIG_BYTES_MAX >> 10
        );
    }
    String::from_utf8(bytes)
        .ok()
        .with_context(|| format!("`{}` is not UTF-8 text", path.display()))
}

fn open(path: &Path) -> anyhow::Result<File> {
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            bail!("there is no file `{}`", path.display())
        }
        Err(error) => {
            return Err(error).with_context(|| format!("could not open `{}`", path.display()));
        }
    };
    // Asked of the open file, so that the name cannot come to mean something else.
    let about = file
        .metadata()
        .with_context(|| format!("could not inspect `{}`", path.display()))?;
    if about.is_dir() {
        bail!(
            "`{0}` is a folder; name its files, such as {0}/*.json",
            path.display().to_string().trim_end_matches('/')
        );
    }
    Ok(file)
}

/// One byte more than the bound tells that there is more.
fn read_up_to(reader: impl io::Read, bytes_max: usize) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    reader.take(bytes_max as u64 + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}
