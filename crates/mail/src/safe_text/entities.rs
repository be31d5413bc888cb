//! Character references of HTML: numeric ones and the named ones that occur in mail.
//!
//! The table has all names of HTML 4 and those later ones that stand for punctuation, spaces, invisible characters
//! and common characters of European languages.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::LazyLock;

use memchr::memchr;

/// The longest name that is looked up.
const MAX_NAME: usize = 32;

/// The longest name that counts without its semicolon.
const MAX_BARE_NAME: usize = 6;

/// Where a reference occurs: attributes keep `&copy=1`, because there it is part of a URL.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum ReferenceContext {
    /// Between tags.
    Text,
    /// In the value of an attribute.
    Attribute,
}

/// Replaces the references in a text.
pub(super) fn decode(text: &str, context: ReferenceContext) -> Cow<'_, str> {
    if memchr(b'&', text.as_bytes()).is_none() {
        return Cow::Borrowed(text);
    }
    let mut decoded = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('&') {
        decoded.push_str(before);
        if let Some((c, length)) = read_reference(after, context) {
            decoded.push(c);
            rest = after.get(length..).unwrap_or_default();
        } else {
            decoded.push('&');
            rest = after;
        }
    }
    decoded.push_str(rest);
    Cow::Owned(decoded)
}

/// Reads what follows an ampersand: the character, and how many bytes name it.
fn read_reference(text: &str, context: ReferenceContext) -> Option<(char, usize)> {
    if let Some(number) = text.strip_prefix('#') {
        return read_number(number).map(|(c, length)| (c, length + 1));
    }
    let name_length = text.bytes().take(MAX_NAME).take_while(u8::is_ascii_alphanumeric).count();
    if text.as_bytes().get(name_length) == Some(&b';')
        && let Some(c) = text.get(..name_length).and_then(|name| TABLE.get(name))
    {
        return Some((*c, name_length + 1));
    }
    (2..=name_length.min(MAX_BARE_NAME)).rev().find_map(|length| {
        let c = *text.get(..length).and_then(|name| TABLE.get(name))?;
        let next = text.as_bytes().get(length).copied().unwrap_or_default();
        let part_of_address =
            context == ReferenceContext::Attribute && (next == b'=' || next.is_ascii_alphanumeric());
        (is_bare(c) && !part_of_address).then_some((c, length))
    })
}

/// Whether the names of a character count without a semicolon: those of Latin-1, for historical reasons.
fn is_bare(c: char) -> bool {
    matches!(c, '&' | '<' | '>' | '"' | '\u{a0}'..='\u{ff}')
}

fn read_number(text: &str) -> Option<(char, usize)> {
    let (digits, radix, prefix) = match text.as_bytes().first() {
        Some(b'x' | b'X') => (text.get(1..)?, 16, 1),
        _ => (text, 10, 0),
    };
    let length = digits.bytes().take_while(|byte| char::from(*byte).is_digit(radix)).count();
    if length == 0 {
        return None;
    }
    let value = digits
        .chars()
        .take(length)
        .filter_map(|c| c.to_digit(radix))
        .fold(0_u32, |value, digit| value.saturating_mul(radix).saturating_add(digit));
    let semicolon = usize::from(digits.as_bytes().get(length) == Some(&b';'));
    Some((character(value), prefix + length + semicolon))
}

/// The character of a number; 128 to 159 are read as Windows-1252, as browsers do.
fn character(value: u32) -> char {
    const WINDOWS_1252: [char; 32] = [
        '€', '\u{81}', '‚', 'ƒ', '„', '…', '†', '‡', 'ˆ', '‰', 'Š', '‹', 'Œ', '\u{8d}', 'Ž', '\u{8f}',
        '\u{90}', '‘', '’', '“', '”', '•', '–', '—', '˜', '™', 'š', '›', 'œ', '\u{9d}', 'ž', 'Ÿ',
    ];
    match value {
        0 => char::REPLACEMENT_CHARACTER,
        0x80..=0x9f => usize::try_from(value - 0x80)
            .ok()
            .and_then(|index| WINDOWS_1252.get(index).copied())
            .unwrap_or(char::REPLACEMENT_CHARACTER),
        _ => char::from_u32(value).unwrap_or(char::REPLACEMENT_CHARACTER),
    }
}

static TABLE: LazyLock<HashMap<&'static str, char>> = LazyLock::new(|| {
    NAMES
        .split_ascii_whitespace()
        .filter_map(|entry| {
            let (name, code) = entry.split_once(':')?;
            Some((name, char::from_u32(u32::from_str_radix(code, 16).ok()?)?))
        })
        .collect()
});

/// Names with their code points in hexadecimal.
const NAMES: &str = "\
    AElig:c6 AMP:26 Aacute:c1 Acirc:c2 Agrave:c0 Alpha:391 Aogon:104 ApplyFunction:2061 Aring:c5 \
    Atilde:c3 Auml:c4 Beta:392 COPY:a9 Cacute:106 Ccaron:10c Ccedil:c7 Chi:3a7 Dagger:2021 Delta:394 \
    ETH:d0 Eacute:c9 Ecaron:11a Ecirc:ca Egrave:c8 Eogon:118 Epsilon:395 Eta:397 Euml:cb GT:3e Gamma:393 \
    Gbreve:11e Hat:5e Iacute:cd Icirc:ce Idot:130 Igrave:cc InvisibleComma:2063 InvisibleTimes:2062 \
    Iota:399 Iuml:cf Kappa:39a LT:3c Lambda:39b Lstrok:141 MediumSpace:205f Mu:39c Nacute:143 \
    NegativeMediumSpace:200b NegativeThickSpace:200b NegativeThinSpace:200b NegativeVeryThinSpace:200b \
    NewLine:a NoBreak:2060 NonBreakingSpace:a0 Ntilde:d1 Nu:39d OElig:152 Oacute:d3 Ocirc:d4 Ograve:d2 \
    Omega:3a9 Omicron:39f Oslash:d8 Otilde:d5 Ouml:d6 Phi:3a6 Pi:3a0 Prime:2033 Psi:3a8 QUOT:22 REG:ae \
    Rcaron:158 Rho:3a1 Sacute:15a Scaron:160 Scedil:15e Sigma:3a3 THORN:de TRADE:2122 Tab:9 Tau:3a4 \
    Theta:398 ThinSpace:2009 Uacute:da Ucirc:db Ugrave:d9 Upsilon:3a5 Uuml:dc VeryThinSpace:200a Xi:39e \
    Yacute:dd Yuml:178 Zacute:179 Zcaron:17d Zdot:17b ZeroWidthSpace:200b Zeta:396 aacute:e1 acirc:e2 \
    acute:b4 aelig:e6 agrave:e0 alefsym:2135 alpha:3b1 amp:26 and:2227 ang:2220 aogon:105 apos:27 \
    aring:e5 ast:2a asymp:2248 atilde:e3 auml:e4 bdquo:201e beta:3b2 bigstar:2605 blacksquare:25aa \
    breve:2d8 brvbar:a6 bsol:5c bull:2022 cacute:107 cap:2229 caron:2c7 ccaron:10d ccedil:e7 cedil:b8 \
    cent:a2 check:2713 checkmark:2713 chi:3c7 circ:2c6 clubs:2663 colon:3a comma:2c commat:40 cong:2245 \
    copy:a9 copysr:2117 crarr:21b5 cross:2717 cup:222a curren:a4 dArr:21d3 dagger:2020 darr:2193 \
    dash:2010 deg:b0 delta:3b4 diams:2666 divide:f7 dollar:24 dot:2d9 eacute:e9 ecaron:11b ecirc:ea \
    egrave:e8 empty:2205 emsp:2003 emsp13:2004 emsp14:2005 ensp:2002 eogon:119 epsilon:3b5 equals:3d \
    equiv:2261 eta:3b7 eth:f0 euml:eb euro:20ac excl:21 exist:2203 fnof:192 forall:2200 frac12:bd \
    frac14:bc frac34:be frasl:2044 gamma:3b3 gbreve:11f ge:2265 grave:60 gt:3e hArr:21d4 hairsp:200a \
    half:bd harr:2194 hearts:2665 hellip:2026 horbar:2015 hyphen:2010 iacute:ed ic:2063 icirc:ee \
    iexcl:a1 igrave:ec image:2111 imath:131 incare:2105 infin:221e int:222b iota:3b9 iquest:bf isin:2208 \
    it:2062 iuml:ef kappa:3ba lArr:21d0 lambda:3bb lang:2329 laquo:ab larr:2190 lbrace:7b lbrack:5b \
    lceil:2308 lcub:7b ldquo:201c le:2264 lfloor:230a lowast:2217 lowbar:5f loz:25ca lpar:28 lrm:200e \
    lsaquo:2039 lsqb:5b lsquo:2018 lstrok:142 lt:3c macr:af mdash:2014 micro:b5 middot:b7 minus:2212 \
    mldr:2026 mu:3bc nabla:2207 nacute:144 nbsp:a0 ndash:2013 ne:2260 ni:220b nldr:2025 not:ac \
    notin:2209 nsub:2284 ntilde:f1 nu:3bd num:23 numsp:2007 oacute:f3 ocirc:f4 oelig:153 ogon:2db \
    ograve:f2 oline:203e omega:3c9 omicron:3bf oplus:2295 or:2228 ordf:aa ordm:ba oslash:f8 otilde:f5 \
    otimes:2297 ouml:f6 para:b6 part:2202 percnt:25 period:2e permil:2030 perp:22a5 phi:3c6 phone:260e \
    pi:3c0 piv:3d6 plus:2b plusmn:b1 pound:a3 prime:2032 prod:220f prop:221d psi:3c8 puncsp:2008 \
    quest:3f quot:22 rArr:21d2 radic:221a rang:232a raquo:bb rarr:2192 rbrace:7d rbrack:5d rcaron:159 \
    rceil:2309 rcub:7d rdquo:201d real:211c reg:ae rfloor:230b rho:3c1 ring:2da rlm:200f rpar:29 \
    rsaquo:203a rsqb:5d rsquo:2019 rtrif:25b8 sacute:15b sbquo:201a scaron:161 scedil:15f sdot:22c5 \
    sect:a7 semi:3b shy:ad sigma:3c3 sigmaf:3c2 sim:223c sol:2f spades:2660 squf:25aa star:2606 \
    starf:2605 sub:2282 sube:2286 sum:2211 sup:2283 sup1:b9 sup2:b2 sup3:b3 supe:2287 szlig:df tau:3c4 \
    there4:2234 theta:3b8 thetasym:3d1 thinsp:2009 thorn:fe tilde:2dc times:d7 trade:2122 uArr:21d1 \
    uacute:fa uarr:2191 ucirc:fb ugrave:f9 uml:a8 upsih:3d2 upsilon:3c5 utri:25b5 uuml:fc vellip:22ee \
    verbar:7c vert:7c weierp:2118 xi:3be yacute:fd yen:a5 yuml:ff zacute:17a zcaron:17e zdot:17c \
    zeta:3b6 zwj:200d zwnj:200c";
