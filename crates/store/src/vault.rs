//! Encryption at rest: one master key for the installation, one data key for each workspace.
//!
//! The keys themselves, and sealing bytes with them. Where sealed bytes are stored (a row, a blob, a cursor given to
//! a client) is up to the callers.
//!
//! Every sealed value is `version (1 byte) | nonce (24 bytes) | ciphertext | tag (16 bytes)` under XChaCha20-Poly1305.
//! Its nonce is long enough to be random without counting. The purpose of a value is authenticated with it, so bytes
//! that are copied elsewhere do not open there.

use std::fmt;
use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use base64::Engine;
use base64::alphabet;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use chacha20poly1305::{AeadInOut, Key, KeyInit, Tag, XChaCha20Poly1305, XNonce};
use data_encoding::{HEXLOWER, HEXLOWER_PERMISSIVE};
use sha2::{Digest, Sha256};
use zeroize::{Zeroize, ZeroizeOnDrop, Zeroizing};

use crate::blobs::durable;

const VERSION: u8 = 1;
const KEY_SIZE: usize = 32;
const NONCE_SIZE: usize = 24;
const TAG_SIZE: usize = 16;
const HEADER_SIZE: usize = 1 + NONCE_SIZE;

/// Errors of keys and sealed bytes; no text holds a secret.
#[derive(Debug, thiserror::Error)]
pub enum VaultError {
    /// The text is not a key in hexadecimal digits.
    #[error("a master key in hexadecimal is exactly 64 digits (32 bytes)")]
    NotHex,
    /// The text is not a key in base64.
    #[error("a master key in base64 must decode to exactly 32 bytes")]
    NotBase64,
    /// The key file can be used by other users than its owner.
    #[error(
        "the master key file {} is open to other users of this machine; run `chmod 600` on it and consider a new key",
        .path.display()
    )]
    Exposed {
        /// The key file.
        path: PathBuf,
    },
    /// The key file exists but holds no key.
    #[error("the master key file {} must hold 64 hexadecimal digits and nothing else", .path.display())]
    BadFile {
        /// The key file.
        path: PathBuf,
    },
    /// The key file could not be read or written.
    #[error("cannot {action} the master key file {}: {cause}", .path.display())]
    File {
        /// The action that failed, as a verb.
        action: &'static str,
        /// The key file.
        path: PathBuf,
        /// The error of the operating system.
        #[source]
        cause: io::Error,
    },
    /// The sealed bytes do not open; by design the reason cannot be known.
    #[error("the sealed bytes are damaged, or belong to another key, workspace or purpose")]
    Refused,
    /// The sealed bytes have a version that this program does not know.
    #[error(
        "the sealed bytes have version {0}, which this program does not know; is it older than the data?"
    )]
    UnknownVersion(u8),
    /// The plaintext is longer than the cipher can take (256 GiB).
    #[error("the content is too long to be sealed")]
    TooLong,
    /// The operating system has no random bytes.
    #[error("the operating system gave no random bytes")]
    NoRandomness,
}

/// The key of the installation: it wraps the data keys and seals what belongs to no workspace.
#[derive(Clone, Zeroize, ZeroizeOnDrop)]
pub struct MasterKey([u8; KEY_SIZE]);

/// The key of one workspace: it seals everything of that workspace.
#[derive(Clone, Zeroize, ZeroizeOnDrop)]
pub struct DataKey([u8; KEY_SIZE]);

impl MasterKey {
    /// Generates a new key.
    pub fn generate() -> Result<Self, VaultError> {
        Ok(Self(random()?))
    }

    /// Reads a key written as 64 hexadecimal digits; space around it is ignored.
    pub fn from_hex(text: &str) -> Result<Self, VaultError> {
        decode_hex(text.trim()).map(Self).ok_or(VaultError::NotHex)
    }

    /// Reads a key written in base64, standard or URL-safe, padded or not; space around it is ignored.
    pub fn from_base64(text: &str) -> Result<Self, VaultError> {
        let text = text.trim();
        let alphabet = if text.contains(['-', '_']) { &alphabet::URL_SAFE } else { &alphabet::STANDARD };
        let config = GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent);
        // One byte more than a key, so that a longer text is noticed instead of cut.
        let mut decoded = Zeroizing::new([0; KEY_SIZE + 1]);
        let length = GeneralPurpose::new(alphabet, config).decode_slice(text, decoded.as_mut_slice());
        match (length, decoded.first_chunk()) {
            (Ok(KEY_SIZE), Some(key)) => Ok(Self(*key)),
            _ => Err(VaultError::NotBase64),
        }
    }

    /// Reads the key from a file, or creates the file (mode 0600) with a new key.
    ///
    /// Processes that start at the same time all end up with the key that was written first, and the file is on disk
    /// before anything is encrypted with it. Blocks: call it at start, not from an async task.
    pub fn load_or_create(path: &Path) -> Result<Self, VaultError> {
        if let Some(key) = read_key_file(path)? {
            return Ok(key);
        }
        create_key_file(path, &Self::generate()?)?;
        // The winner of a race reads its file back too: the key in use is the one found next time.
        read_key_file(path)?.ok_or_else(|| file_error("find", path, io::ErrorKind::NotFound.into()))
    }

    /// Encrypts the data key of a workspace, to be stored with the data.
    pub fn wrap(&self, workspace: &str, key: &DataKey) -> Result<Vec<u8>, VaultError> {
        let purpose = ["wrapped data key", workspace];
        seal(&self.subkey(&purpose), &purpose, &key.0)
    }

    /// Decrypts the data key of a workspace; a key wrapped for another workspace is refused.
    pub fn unwrap_key(&self, workspace: &str, wrapped: &[u8]) -> Result<DataKey, VaultError> {
        let purpose = ["wrapped data key", workspace];
        let opened = Zeroizing::new(open(&self.subkey(&purpose), &purpose, wrapped)?);
        let key = opened.as_slice().try_into().map_err(|_| VaultError::Refused)?;
        Ok(DataKey(key))
    }

    /// Seals bytes that belong to no workspace (a cursor, a backup) with a sub-key of the purpose.
    pub fn seal(&self, purpose: &str, plaintext: &[u8]) -> Result<Vec<u8>, VaultError> {
        let purpose = ["server", purpose];
        seal(&self.subkey(&purpose), &purpose, plaintext)
    }

    /// Opens what [`MasterKey::seal`] sealed for the same purpose.
    pub fn open(&self, purpose: &str, sealed: &[u8]) -> Result<Vec<u8>, VaultError> {
        let purpose = ["server", purpose];
        open(&self.subkey(&purpose), &purpose, sealed)
    }

    /// A subkey for a purpose, for other uses than this cipher.
    pub fn derive(&self, purpose: &str) -> Zeroizing<[u8; KEY_SIZE]> {
        self.subkey(&["derived", purpose])
    }

    /// Derives a subkey for one purpose, so that no two uses of the master key share a cipher key.
    ///
    /// This is HKDF-Expand (RFC 5869) for one block; the extract step is for keys that are not uniform, and ours is.
    fn subkey(&self, purpose: &[&str]) -> Zeroizing<[u8; KEY_SIZE]> {
        hmac_sha256(&self.0, &[&joined(purpose), &[1]])
    }
}

impl DataKey {
    /// Generates a new key.
    pub fn generate() -> Result<Self, VaultError> {
        Ok(Self(random()?))
    }

    /// Seals bytes of the workspace for a purpose, which must be named again to open them.
    pub fn seal(&self, purpose: &str, plaintext: &[u8]) -> Result<Vec<u8>, VaultError> {
        seal(&self.0, &["workspace", purpose], plaintext)
    }

    /// Opens what [`DataKey::seal`] sealed for the same purpose.
    pub fn open(&self, purpose: &str, sealed: &[u8]) -> Result<Vec<u8>, VaultError> {
        open(&self.0, &["workspace", purpose], sealed)
    }

    /// A MAC key of this workspace, for a purpose.
    pub fn mac_key(&self, purpose: &str) -> Zeroizing<[u8; KEY_SIZE]> {
        hmac_sha256(&self.0, &[&joined(&["mark", purpose]), &[1]])
    }
}

impl fmt::Debug for MasterKey {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("MasterKey(redacted)")
    }
}

impl fmt::Debug for DataKey {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("DataKey(redacted)")
    }
}

/// Fills an array with random bytes of the operating system.
pub(crate) fn random<const SIZE: usize>() -> Result<[u8; SIZE], VaultError> {
    let mut bytes = [0; SIZE];
    getrandom::fill(&mut bytes).map_err(|_| VaultError::NoRandomness)?;
    Ok(bytes)
}

/// Writes bytes as lower-case hexadecimal digits.
pub fn hex(bytes: &[u8]) -> String {
    // One allocation of the exact size: text of a key must not be left behind in a buffer that grew.
    HEXLOWER.encode(bytes)
}

fn decode_hex(text: &str) -> Option<[u8; KEY_SIZE]> {
    if text.len() != KEY_SIZE * 2 {
        return None;
    }
    // Into its place: no copy of a key is left behind.
    let mut key = [0; KEY_SIZE];
    HEXLOWER_PERMISSIVE.decode_mut(text.as_bytes(), &mut key).ok().map(|_| key)
}

fn seal(key: &[u8; KEY_SIZE], purpose: &[&str], plaintext: &[u8]) -> Result<Vec<u8>, VaultError> {
    let nonce: [u8; NONCE_SIZE] = random()?;
    let mut sealed = Vec::with_capacity(HEADER_SIZE + plaintext.len() + TAG_SIZE);
    sealed.push(VERSION);
    sealed.extend_from_slice(&nonce);
    sealed.extend_from_slice(plaintext);
    let tag = XChaCha20Poly1305::new(&Key::from(*key))
        .encrypt_inout_detached(&XNonce::from(nonce), &joined(purpose), (&mut sealed[HEADER_SIZE..]).into())
        .map_err(|_| VaultError::TooLong)?;
    sealed.extend_from_slice(&tag);
    Ok(sealed)
}

fn open(key: &[u8; KEY_SIZE], purpose: &[&str], sealed: &[u8]) -> Result<Vec<u8>, VaultError> {
    let (&version, rest) = sealed.split_first().ok_or(VaultError::Refused)?;
    if version != VERSION {
        return Err(VaultError::UnknownVersion(version));
    }
    let (nonce, rest) = rest.split_first_chunk::<NONCE_SIZE>().ok_or(VaultError::Refused)?;
    let (ciphertext, tag) = rest.split_last_chunk::<TAG_SIZE>().ok_or(VaultError::Refused)?;
    let mut plaintext = ciphertext.to_vec();
    XChaCha20Poly1305::new(&Key::from(*key))
        .decrypt_inout_detached(
            &XNonce::from(*nonce),
            &joined(purpose),
            plaintext.as_mut_slice().into(),
            &Tag::from(*tag),
        )
        .map_err(|_| VaultError::Refused)?;
    Ok(plaintext)
}

/// Joins the version and the parts of a purpose, each with its length, so that different lists give different bytes.
fn joined(purpose: &[&str]) -> Vec<u8> {
    let mut bytes = b"agent-mailbox vault".to_vec();
    bytes.push(VERSION);
    for part in purpose {
        bytes.extend_from_slice(&(part.len() as u64).to_le_bytes());
        bytes.extend_from_slice(part.as_bytes());
    }
    bytes
}

/// HMAC-SHA-256 (RFC 2104) with a key shorter than one block.
fn hmac_sha256(key: &[u8; KEY_SIZE], message: &[&[u8]]) -> Zeroizing<[u8; KEY_SIZE]> {
    let padded = |filler: u8| {
        let mut block = Zeroizing::new([filler; 64]);
        for (byte, of_key) in block.iter_mut().zip(key) {
            *byte ^= of_key;
        }
        block
    };
    let mut inner = Sha256::new_with_prefix(*padded(0x36));
    for part in message {
        inner.update(part);
    }
    let outer = Sha256::new_with_prefix(*padded(0x5c)).chain_update(inner.finalize());
    Zeroizing::new(outer.finalize().into())
}

fn read_key_file(path: &Path) -> Result<Option<MasterKey>, VaultError> {
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(file_error("open", path, error)),
    };
    // From the open file, not the path, so that it describes the bytes that are read.
    let about = file.metadata().map_err(|error| file_error("inspect", path, error))?;
    if about.permissions().mode() & 0o077 != 0 {
        return Err(VaultError::Exposed { path: path.into() });
    }
    let mut text = Zeroizing::new(String::with_capacity(256));
    file.take(200).read_to_string(&mut text).map_err(|error| file_error("read", path, error))?;
    let key = MasterKey::from_hex(&text).map_err(|_| VaultError::BadFile { path: path.into() })?;
    // A process that created the file may have died before its name was on disk. A key in a read-only or unreadable
    // folder must not fail the start: such a folder was not just written to.
    let _ = durable::sync_folder(durable::folder_of(path));
    Ok(Some(key))
}

/// Creates a key file; an existing one stays.
fn create_key_file(path: &Path, key: &MasterKey) -> Result<(), VaultError> {
    let failed = |error| file_error("create", path, error);
    let folder = durable::folder_of(path);
    durable::make_folder(folder).map_err(failed)?;
    let temporary = folder.join(format!(".master-key-{}", hex(&random::<16>()?)));
    let mut text = Zeroizing::new(String::with_capacity(KEY_SIZE * 2 + 1));
    text.push_str(&Zeroizing::new(hex(&key.0)));
    text.push('\n');
    // A hard link, unlike a rename, never replaces the key that another process has just created.
    let linked =
        durable::write_new(&temporary, text.as_bytes()).and_then(|()| fs::hard_link(&temporary, path));
    let _ = fs::remove_file(&temporary);
    match linked {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(failed(error)),
        _ => durable::sync_folder(folder).map_err(failed),
    }
}

fn file_error(action: &'static str, path: &Path, cause: io::Error) -> VaultError {
    VaultError::File { action, path: path.into(), cause }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn master() -> MasterKey {
        MasterKey::from_hex("000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f").unwrap()
    }

    /// rules: STORE-15
    #[test]
    fn a_key_file_is_made_once_and_kept_private() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("new/keys/master.key");
        let made = MasterKey::load_or_create(&path).unwrap();
        let loaded = MasterKey::load_or_create(&path).unwrap();
        assert_eq!(made.0, loaded.0);
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(fs::metadata(path.parent().unwrap()).unwrap().permissions().mode() & 0o777, 0o700);
        let text = fs::read_to_string(&path).unwrap();
        assert_eq!((text.len(), text.ends_with('\n')), (65, true));
        assert_eq!(fs::read_dir(path.parent().unwrap()).unwrap().count(), 1, "no temporary file is left");
    }

    /// rules: STORE-15
    #[test]
    fn a_key_file_that_others_may_read_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("master.key");
        MasterKey::load_or_create(&path).unwrap();
        for mode in [0o640, 0o604, 0o620, 0o666] {
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
            let error = MasterKey::load_or_create(&path).unwrap_err();
            assert!(matches!(error, VaultError::Exposed { .. }), "{mode:o}: {error}");
            assert!(error.to_string().contains("chmod 600"));
        }
    }

    #[test]
    fn a_broken_key_file_is_refused_and_not_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("master.key");
        for text in ["", "\n", "abcd\n", &"ab".repeat(33), &"zz".repeat(32)] {
            fs::write(&path, text).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
            assert!(matches!(MasterKey::load_or_create(&path), Err(VaultError::BadFile { .. })), "{text:?}");
            assert_eq!(fs::read_to_string(&path).unwrap(), text);
        }
    }

    #[test]
    fn racing_starts_end_with_the_same_key() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("master.key");
        let keys: Vec<[u8; KEY_SIZE]> = std::thread::scope(|scope| {
            let starts: Vec<_> =
                (0..16).map(|_| scope.spawn(|| MasterKey::load_or_create(&path).unwrap().0)).collect();
            starts.into_iter().map(|start| start.join().unwrap()).collect()
        });
        assert!(keys.iter().all(|key| *key == keys[0]));
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn keys_are_read_in_hexadecimal_and_base64() {
        let upper = "000102030405060708090A0B0C0D0E0F101112131415161718191A1B1C1D1E1F\n";
        assert_eq!(MasterKey::from_hex(upper).unwrap().0, master().0);
        for text in
            ["AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=", "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8"]
        {
            assert_eq!(MasterKey::from_base64(text).unwrap().0, master().0);
        }
        let dashes =
            MasterKey::from_base64(&"-_".repeat(21).chars().chain(['8']).collect::<String>()).unwrap();
        let slashes =
            MasterKey::from_base64(&"+/".repeat(21).chars().chain(['8']).collect::<String>()).unwrap();
        assert_eq!(dashes.0, slashes.0);
        for text in ["", "AAEC", &"A".repeat(44), &"A".repeat(100), "?"] {
            assert!(matches!(MasterKey::from_base64(text), Err(VaultError::NotBase64)), "{text:?}");
        }
        for text in ["", "00", &"é".repeat(32), &"+1".repeat(32)] {
            assert!(matches!(MasterKey::from_hex(text), Err(VaultError::NotHex)), "{text:?}");
        }
    }

    #[test]
    fn debug_shows_no_key() {
        let shown = format!("{:?} {:?}", master(), DataKey([7; KEY_SIZE]));
        assert_eq!(shown, "MasterKey(redacted) DataKey(redacted)");
    }

    #[test]
    fn a_wrapped_key_opens_for_its_workspace_only() {
        let key = DataKey::generate().unwrap();
        let wrapped = master().wrap("ws_a", &key).unwrap();
        assert_eq!(master().unwrap_key("ws_a", &wrapped).unwrap().0, key.0);
        assert!(matches!(master().unwrap_key("ws_b", &wrapped), Err(VaultError::Refused)));
        assert!(matches!(
            MasterKey::generate().unwrap().unwrap_key("ws_a", &wrapped),
            Err(VaultError::Refused)
        ));
        assert_ne!(wrapped, master().wrap("ws_a", &key).unwrap(), "the nonce is fresh");
    }

    #[test]
    fn sealed_bytes_open_for_their_purpose_only() {
        let key = DataKey::generate().unwrap();
        let sealed = key.seal("dkim", b"secret").unwrap();
        assert_eq!(key.open("dkim", &sealed).unwrap(), b"secret");
        assert!(matches!(key.open("telegram", &sealed), Err(VaultError::Refused)));
        assert!(matches!(DataKey::generate().unwrap().open("dkim", &sealed), Err(VaultError::Refused)));

        let cursor = master().seal("cursor", b"").unwrap();
        assert_eq!(master().open("cursor", &cursor).unwrap(), b"");
        assert!(matches!(master().open("backup", &cursor), Err(VaultError::Refused)));
        assert!(master().unwrap_key("cursor", &cursor).is_err());
    }

    #[test]
    fn any_changed_bit_and_any_cut_is_refused() {
        let key = DataKey::generate().unwrap();
        let sealed = key.seal("dkim", b"secret").unwrap();
        for position in 0..sealed.len() * 8 {
            let mut changed = sealed.clone();
            changed[position / 8] ^= 1 << (position % 8);
            assert!(key.open("dkim", &changed).is_err(), "bit {position}");
        }
        for length in 0..sealed.len() {
            assert!(key.open("dkim", &sealed[..length]).is_err(), "{length} bytes");
        }
        assert!(matches!(key.open("dkim", &[9; 60]), Err(VaultError::UnknownVersion(9))));
    }

    #[test]
    fn purposes_with_the_same_letters_differ() {
        assert_ne!(joined(&["ab", "c"]), joined(&["a", "bc"]));
        assert_ne!(*master().subkey(&["server", "cursor"]), *master().subkey(&["server", "backup"]));
    }

    #[test]
    fn derivation_agrees_with_the_published_vector() {
        // RFC 5869, test case 1: the first block of the output for its pseudo-random key and info.
        let prk = decode_hex("077709362c2e32df0ddc3f0dc47bba6390b6c73bb50f9c3122ec844ad7c2b3e5").unwrap();
        let info = [0xf0, 0xf1, 0xf2, 0xf3, 0xf4, 0xf5, 0xf6, 0xf7, 0xf8, 0xf9];
        let okm = "3cb25f25faacd57a90434f64d0362f2a2d2d0a90cf1a5a4c5db02d56ecc4c5bf";
        assert_eq!(hex(hmac_sha256(&prk, &[&info, &[1]]).as_slice()), okm);
    }
}
