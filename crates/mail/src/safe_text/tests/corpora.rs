//! Runs over collections of HTML that are too large to be kept here.

use std::path::PathBuf;
use std::{env, fs};

use super::super::{SafeText, is_forbidden};

// rules: SAFE-7, SAFE-11
#[test]
fn collections_of_html_give_safe_text() {
    let Some(folder) = env::var_os("AGENT_MAILBOX_CORPORA") else {
        println!("AGENT_MAILBOX_CORPORA is not set: no collection to read");
        return;
    };
    let mut folders = vec![PathBuf::from(folder)];
    let (mut files, mut bytes) = (0_usize, 0_usize);
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let Ok(content) = fs::read(&path) else { continue };
            let content = String::from_utf8_lossy(&content);
            let text = SafeText::from_html(&content);
            assert!(!text.as_str().chars().any(is_forbidden), "{}", path.display());
            assert_eq!(SafeText::from_plain(text.as_str()), text, "{}", path.display());
            files += 1;
            bytes += content.len();
        }
    }
    println!("read {files} files, {bytes} bytes");
}
