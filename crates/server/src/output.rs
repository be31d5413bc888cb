//! Output of commands. A closed pipe is no failure, as it would be with `println!`.

use std::{
    fmt::Display,
    io::{self, Write},
};

use crate::failure::{Failure, Result};

/// Writes a line to standard output.
pub fn line(text: impl Display) {
    let _ = writeln!(io::stdout(), "{text}");
}

/// Writes a value to standard output as a line of JSON.
pub fn json(value: &impl serde::Serialize) -> Result<()> {
    line(serde_json::to_string(value).map_err(|error| Failure::new(error.to_string()))?);
    Ok(())
}

/// Writes a text to standard output unchanged.
pub fn text(text: &str) {
    let mut stdout = io::stdout();
    let _ = stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush());
}

/// Writes a line to standard error.
pub fn error(text: impl Display) {
    let _ = writeln!(io::stderr(), "{text}");
}

/// A count with its noun.
pub fn plural(count: u64, noun: &str) -> String {
    let ending = if count == 1 { "" } else { "s" };
    format!("{count} {noun}{ending}")
}

/// Bytes in the most readable unit.
pub fn bytes(count: u64) -> String {
    const UNITS: [&str; 5] = ["bytes", "kB", "MB", "GB", "TB"];
    let mut unit = 0;
    let mut tenths = u128::from(count) * 10;
    while tenths >= 10_000 && unit + 1 < UNITS.len() {
        tenths /= 1000;
        unit += 1;
    }
    if unit == 0 {
        format!("{count} bytes")
    } else {
        format!("{}.{} {}", tenths / 10, tenths % 10, UNITS[unit])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_short() {
        for (count, shown) in [
            (0, "0 bytes"),
            (999, "999 bytes"),
            (1000, "1.0 kB"),
            (123_456, "123.4 kB"),
            (3_000_000_000, "3.0 GB"),
            (u64::MAX, "18446744.0 TB"),
        ] {
            assert_eq!(bytes(count), shown);
        }
    }
}
