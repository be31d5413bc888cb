//! Who runs a command on the server, for the audit log.

/// The name of the user of this process; with `sudo`, also of the one behind it. A user without a name has a number.
pub(super) fn system_user() -> String {
    let id = rustix::process::getuid().as_raw();
    let users = std::fs::read_to_string("/etc/passwd").unwrap_or_default();
    let name = name_in(&users, id).unwrap_or_else(|| id.to_string());
    match std::env::var("SUDO_USER") {
        Ok(behind) if id == 0 && is_name(&behind) && behind != name => format!("{name} ({behind})"),
        _ => name,
    }
}

fn name_in(users: &str, id: u32) -> Option<String> {
    users.lines().find_map(|line| {
        let mut fields = line.split(':');
        let name = fields.next().filter(|name| is_name(name))?;
        (fields.nth(1)?.parse() == Ok(id)).then(|| name.to_owned())
    })
}

/// Whether it is what a user can be called; a variable can hold anything.
fn is_name(text: &str) -> bool {
    (1..=64).contains(&text.len())
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn users_are_found_by_their_number() {
        let users = "root:x:0:0:root:/root:/bin/sh\nada:x:1000:1000:Ada:/home/ada:/bin/sh\nbad\n";
        assert_eq!(name_in(users, 0).as_deref(), Some("root"));
        assert_eq!(name_in(users, 1000).as_deref(), Some("ada"));
        assert_eq!(name_in(users, 7), None);
        assert!(is_name("ada-1.b_c") && !is_name("") && !is_name("a b") && !is_name("a\n"));
    }
}
