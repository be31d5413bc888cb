//! Names that people give to things.

/// Refuses a name that is empty, too long or not one line. White space around it does not count.
pub(crate) fn valid_name(name: &str, (): &()) -> garde::Result {
    let name = name.trim();
    let fault = if name.is_empty() {
        "must not be empty"
    } else if name.chars().count() > 80 {
        "must have at most 80 characters"
    } else if name.chars().any(char::is_control) {
        "must not contain control characters"
    } else {
        return Ok(());
    };
    Err(garde::Error::new(fault))
}

#[cfg(test)]
mod tests {
    use super::valid_name;

    /// rules: MBX-9
    #[test]
    fn a_name_is_counted_in_characters_after_trimming() {
        let longest = "ü".repeat(80);
        for good in ["a", " a ", longest.as_str(), &format!("\t {longest} \n"), "a\u{200b}"] {
            assert!(valid_name(good, &()).is_ok(), "{good:?}");
        }
        for bad in ["", " ", "\u{3000}\n", "a\tb", "a\0b", "a\u{85}b", &format!("{longest}ü")] {
            assert!(valid_name(bad, &()).is_err(), "{bad:?}");
        }
    }
}
