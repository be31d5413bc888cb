//! Values for tests, made when they run: no file of the repository holds one. A template such as `{{base62:36}}` becomes
//! the same value for the same seed.

mod identities;
mod payments;

const BASE62: &str = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
const LOWER: &str = "0123456789abcdefghijklmnopqrstuvwxyz";
const UPPER: &str = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ";

/// Numbers that look made by chance.
pub(crate) struct Chance(u64);

impl Chance {
    pub(crate) fn new(seed: &str) -> Self {
        Self(seed.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        }))
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// One below a bound.
    pub(crate) fn below(&mut self, bound: usize) -> usize {
        usize::try_from(self.next() % bound as u64).unwrap()
    }

    pub(crate) fn pick<'a, T: ?Sized>(&mut self, of: &[&'a T]) -> &'a T {
        of[self.below(of.len())]
    }

    /// A text of the characters of an alphabet.
    pub(crate) fn text(&mut self, alphabet: &str, length: usize) -> String {
        let characters: Vec<char> = alphabet.chars().collect();
        (0..length).map(|_| characters[self.below(characters.len())]).collect()
    }

    fn digits(&mut self, length: usize) -> Vec<u32> {
        (0..length).map(|_| u32::try_from(self.below(10)).unwrap()).collect()
    }
}

/// Fills in the templates of a text. What is no template stays.
pub(crate) fn expand(text: &str, seed: &str) -> String {
    let mut chance = Chance::new(seed);
    let (mut expanded, mut rest) = (String::new(), text);
    while let Some((before, after)) = rest.split_once("{{") {
        expanded.push_str(before);
        let value = after.split_once("}}").and_then(|(name, rest)| Some((value(name, &mut chance)?, rest)));
        if let Some((value, behind)) = value {
            expanded.push_str(&value);
            rest = behind;
        } else {
            expanded.push_str("{{");
            rest = after;
        }
    }
    expanded + rest
}

fn value(template: &str, chance: &mut Chance) -> Option<String> {
    let mut parts = template.split(':');
    let (name, argument) = (parts.next()?, parts.next().unwrap_or_default());
    let layout = parts.next().unwrap_or_default();
    let length = argument.parse().unwrap_or(0);
    Some(match name {
        "base62" => chance.text(BASE62, length),
        "base64" => chance.text(&format!("{BASE62}+/"), length),
        "base64url" => {
            chance.text(BASE62, 1)
                + &chance.text(&format!("{BASE62}-_"), length - 2)
                + &chance.text(BASE62, 1)
        }
        "base32" => chance.text("ABCDEFGHIJKLMNOPQRSTUVWXYZ234567", length),
        "bech32" => chance.text("QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L", length),
        "hex" => chance.text("0123456789abcdef", length),
        "upper_hex" => chance.text("0123456789ABCDEF", length),
        "digits" => chance.text("123456789", 1) + &chance.text("0123456789", length - 1),
        "lower" => chance.text(LOWER, length),
        "upper" => chance.text(UPPER, length),
        "letters" => chance.text(&BASE62[10..], length),
        "repeat" => argument.repeat(layout.parse().ok()?),
        "uuid" => [8, 4, 4, 4, 12].map(|length| chance.text("0123456789abcdef", length)).join("-"),
        "pem" => (0..length).map(|_| chance.text(&format!("{BASE62}+/"), 64)).collect::<Vec<_>>().join("\n"),
        "checked" => {
            let body = chance.text(BASE62, 30);
            format!("{argument}{body}{}", checksum(&body))
        }
        "own_key" => {
            let body = chance.text(BASE62, 43);
            format!("{}-{body}{}", "sk-proj", checksum(&body))
        }
        "jwt" => jwt(chance),
        "basic" => base64(format!("deploy:{}", password(chance)).as_bytes(), true),
        "discord" => {
            let number = chance.text("123456789", 1) + &chance.text("0123456789", 17);
            format!(
                "{}.{}.{}",
                base64(number.as_bytes(), false),
                chance.text(BASE62, 6),
                chance.text(BASE62, 27)
            )
        }
        "password" => password(chance),
        "card" => payments::card(argument, layout, chance)?,
        "iban" => payments::iban(argument, layout, chance)?,
        "mrz" => payments::passport(chance),
        "id" => identities::identity(argument, layout, chance)?,
        _ => return None,
    })
}

/// One as people choose or generators make them.
fn password(chance: &mut Chance) -> String {
    const WORDS: &[&str] =
        &["Sommer", "Dragon", "Welcome", "Fussball", "Berlin", "Madrid", "Tiger", "Coffee", "Winter", "Lyon"];
    let word = chance.pick(WORDS);
    match chance.below(6) {
        0 => format!("{word}{}!", chance.text("23456789", 4)),
        1 => format!("{}{}", word.to_lowercase(), chance.text("23456789", 3)),
        2 => {
            chance.text("abcdefghjkmnpqrstuvwxyz", 5)
                + &chance.text("23456789", 2)
                + &chance.text("ABCDEFGHJK", 3)
                + "$k2"
        }
        3 => format!("{}#{}{}", chance.pick(WORDS), chance.text("23456789", 2), chance.pick(WORDS)),
        4 => chance.text("abcdefghjkmnpqrstuvwxyzABCDEFGHJKMNP23456789", 14) + "7q",
        _ => format!(
            "{}-{}-{}",
            chance.text("abcdefgh", 4),
            chance.text("23456789", 4),
            chance.text("ABCDEF", 4)
        ),
    }
}

fn jwt(chance: &mut Chance) -> String {
    let algorithm = chance.pick(&["HS256", "RS256", "ES256"]);
    let header = base64(format!(r#"{{"alg":"{algorithm}","typ":"JWT"}}"#).as_bytes(), false);
    let subject = chance.text("0123456789", 10);
    let claims =
        base64(format!(r#"{{"sub":"{subject}","name":"J. Doe","iat":1516239022}}"#).as_bytes(), false);
    let signature = chance.text(BASE62, if algorithm == "RS256" { 342 } else { 43 });
    format!("{header}.{claims}.{signature}")
}

fn base64(bytes: &[u8], padded: bool) -> String {
    let alphabet = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    let mut text = String::new();
    for chunk in bytes.chunks(3) {
        let number = chunk.iter().fold(0, |number, byte| (number << 8) | usize::from(*byte))
            << (8 * (3 - chunk.len()));
        for index in 0..=chunk.len() {
            text.push(char::from(alphabet[(number >> (18 - 6 * index)) & 63]));
        }
        if padded {
            text.push_str(&"=".repeat(3 - chunk.len()));
        }
    }
    if padded { text.replace('-', "+").replace('_', "/") } else { text }
}

/// A CRC-32 in base 62, bit by bit.
fn checksum(body: &str) -> String {
    let crc = !body.bytes().fold(u32::MAX, |crc, byte| {
        (0..8).fold(
            crc ^ u32::from(byte),
            |crc, _| if crc & 1 == 1 { (crc >> 1) ^ 0xedb8_8320 } else { crc >> 1 },
        )
    });
    let mut number = usize::try_from(crc).unwrap();
    let mut text = Vec::new();
    for _ in 0..6 {
        text.push(BASE62.as_bytes()[number % 62]);
        number /= 62;
    }
    text.reverse();
    String::from_utf8(text).unwrap()
}
