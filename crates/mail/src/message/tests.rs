//! Reading mail of every shape: ordinary, old, broken and hostile.

mod hostile;
mod ordinary;
mod properties;
mod values;

use super::{File, Message, decode, read};

/// Reads a message written with plain line ends as it would come over SMTP.
fn read_text(text: &str) -> Message {
    read(crlf(text).as_bytes())
}

fn crlf(text: &str) -> String {
    text.replace('\n', "\r\n")
}

/// The decoded bytes of the file of that name.
fn bytes_of(raw: &[u8], message: &Message, name: &str) -> Vec<u8> {
    let file: &File = message.files.iter().find(|file| file.name == name).expect("the file is there");
    let bytes = decode(raw, file);
    assert_eq!(bytes.len() as u64, file.size, "the size of {name}");
    bytes
}
