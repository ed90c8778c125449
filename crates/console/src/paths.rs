//! Names of files in arguments.

use std::path::Path;

/// Whether standard input is meant, or standard output.
pub fn is_stdin(path: &Path) -> bool {
    path == Path::new("-")
}

/// Whether two names are of one file, which would be emptied before it is read.
pub fn is_same_file(input: &Path, output: &Path) -> bool {
    if is_stdin(input) || is_stdin(output) {
        return false;
    }
    match (input.canonicalize(), output.canonicalize()) {
        // A pipe or a device may well be both.
        (Ok(input), Ok(output)) => input == output && input.is_file(),
        _ => false,
    }
}
