//! Words, in many languages, that tell codes and links from other numbers and other links.

use std::ops::Range;

/// Words or phrases in lower case with `|` between them.
#[derive(Clone, Copy)]
pub(super) struct List(pub(super) &'static str);

impl List {
    fn iter(self) -> impl Iterator<Item = &'static str> {
        self.0.split('|')
    }

    /// Whether a word is one of them.
    pub(super) fn has(self, word: &str) -> bool {
        self.iter().any(|listed| listed == word)
    }

    /// Whether a text in lower case begins with one of them.
    pub(super) fn begins(self, lower: &str) -> bool {
        self.iter().any(|listed| lower.starts_with(listed))
    }

    /// Whether one of them occurs in a text in lower case.
    pub(super) fn occurs_in(self, lower: &str) -> bool {
        self.iter().any(|listed| lower.contains(listed))
    }
}

/// Phrases that mean a code to type in, where case does not matter.
const CODE_PHRASES: List = List(
    "\
    one-time pass|one time pass|onetime pass|single-use|usage unique|un solo uso|uso unico|uso único|\
    использования|einmalpasswort|einmalkennwort|eenmalig wachtwoord|tek kullanım|验证码|驗證碼|校验码|確認碼|确认码|\
    动态码|動態碼|安全码|安全碼|动态密码|一次性密码|认证码|登录码|認証コード|確認コード|認証番号|確認番号|ワンタイムパスワード|パスコード|暗証番号|セキュリティコード|検証コード|\
    ログインコード|인증번호|인증 번호|인증코드|인증 코드|확인코드|확인 코드|보안코드|보안 코드|일회용|로그인 코드|رمز|كود|कोड|รหัส|קוד|κωδικ|ओटीपी",
);

/// Words that mean a code to type in.
const CODE_WORDS: List = List(
    "\
    code|codes|passcode|otp|pin|totp|2fa|código|codigo|códigos|codice|codici|cod|codul|код|кода|коду|\
    кодом|коды|kod|kodu|kodun|kodunuz|koden|kode|koden|kodi|kód|kódja|kódu|koodi|koodisi|mã|senha|clave|\
    şifre|şifreniz|şifresi",
);

/// Endings of compound words that mean a code.
const CODE_ENDINGS: List = List(
    "\
    code|kod|kode|koden|koodi|kód",
);

/// Phrases with a word for code in them that mean something else.
const OTHER_CODES: List = List(
    "\
    promo code|promotion code|promotional code|discount code|coupon code|voucher code|gift code|\
    gift card code|referral code|offer code|savings code|zip code|postal code|post code|area code|\
    country code|dial code|error code|http code|return code|response code|reason code|status code|exit code|source code|open code|code review|\
    code of conduct|product code|item code|tracking code|booking code|order code|qr code|bar code|\
    dress code|sort code|swift code|bank code|tax code|building code|morse code|code postal|code promo|\
    code de réduction|code de suivi|code pin de votre carte|código postal|código promocional|\
    código de descuento|código de desconto|código de seguimiento|código de rastreio|código de barras|\
    codice postale|codice sconto|codice fiscale|codice ordine|codice promozionale|\
    codice di tracciamento|codice cliente|код товара|код заказа|код скидки|indirim kodu|posta kodu|\
    kampanya kodu|クーポンコード|qrコード|バーコード|郵便番号|쿠폰 코드|할인 코드|우편 번호",
);

/// Compound words that end like a code and are something else.
const OTHER_WORDS: List = List(
    "\
    postcode|zipcode|barcode|qrcode|promocode|unicode|encode|decode|transcode|rabattcode|gutscheincode|\
    kortingscode|vouchercode|couponcode|discountcode|aktionscode|opcode|vscode|xcode|barkod|strichcode|\
    kundencode|rabattkod|rabattkode|indirimkodu|leetcode|geocode",
);

/// Words around codes and links of sign-up messages.
const SIGN_UP: List = List(
    "\
    verif|confirm|authenti|sign in|sign-in|signing in|log in|log-in|login|logging in|sign up|sign-up|\
    one-time|two-factor|2-step|two-step|security|activat|bestätig|anmeld|verifizier|sicherheit|aktivier|\
    vérifi|connexion|activer|inscription|verific|inicia|acceso|acesso|iniciar|accesso|accedi|registr|\
    inlog|aanmeld|bevestig|验证|登录|驗證|登入|注册|確認|認証|ログイン|登録|인증|로그인|확인|подтвер|вход|войти|регистрац|доступ|\
    doğrula|giriş|onay|логин|potwierd|logowan|bekräft|logga in",
);

/// Words of offers, whose codes are not the kind we look for.
const OFFERS: List = List(
    "\
    checkout|discount|% off|coupon|promo|voucher|gift card|rabatt|gutschein|einlösen|remise|réduction|\
    descuento|desconto|sconto|korting|скидк|промокод|indirim|优惠|折扣|割引|クーポン|할인|쿠폰|free shipping|redeem|\
    sale |black friday|save 10|save 20",
);

/// Words before or after numbers that are not codes.
const OTHER_NUMBERS: List = List(
    "\
    order|invoice|tracking|ticket|case|reference|ref|booking|reservation|account|customer|phone|tel|\
    telephone|fax|mobile|call|whatsapp|zip|postcode|box|suite|street|road|avenue|floor|room|iban|bic|\
    card|ending|total|amount|price|paid|payment|balance|version|build|copyright|rfc|iso|number|no|nr|\
    flight|shipment|parcel|package|delivery|transaction|receipt|contract|policy|member|id|sku|item|\
    article|issue|pr|in|since|year|usd|eur|gbp|inr|jpy|rub|try|kr|chf|rs|bestellung|bestellnummer|\
    bestellnr|auftrag|auftragsnummer|rechnung|rechnungsnummer|sendung|sendungsnummer|kundennummer|\
    vorgang|vorgangsnummer|telefon|telefonnummer|plz|postfach|betrag|ustid|hrb|konto|kontonummer|\
    ticketnummer|aktenzeichen|commande|facture|suivi|téléphone|client|dossier|montant|siret|bp|cedex|\
    numéro|pedido|factura|seguimiento|teléfono|cliente|importe|cp|número|encomenda|fatura|telefone|\
    rastreio|valor|ordine|fattura|spedizione|telefono|importo|cap|numero|bestelling|bestelnummer|\
    factuur|factuurnummer|klantnummer|telefoon|zending|bedrag|заказ|заказа|заказу|счет|счёт|телефон|\
    номер|договор|сумма|руб|инн|трек|sipariş|siparişiniz|fatura|kargo|takip|numarası|müşteri|tutar",
);

/// The same in scripts without spaces between words.
const OTHER_NUMBERS_JOINED: List = List(
    "\
    订单|单号|快递|电话|邮编|编号|金额|訂單|電話|注文|追跡|問い合わせ番号|お客様番号|会員番号|郵便|伝票|金額|주문|송장|전화|고객번호|우편번호|금액|운송장",
);

/// What follows numbers that count something.
const UNITS: List = List(
    "\
    gb|mb|seconds|second|secs|sekunden|secondes|segundos|secondi|seconden|секунд|saniye|kb|tb|km|kg|miles|minutes|minute|min|hours|hour|days|day|points|users|people|followers|\
    members|steps|stars|reviews|items|usd|eur|gbp|kr|chf|руб|percent|words|results|times|views|pm|am|\
    uhr|minuten|stunden|tage|minutos|heures|jours|ore|giorni|dakika|gün|минут|дней|credits|tokens|\
    messages|requests|street|st|avenue|ave|road|rd|blvd|boulevard|lane|drive|way|suite|floor",
);

/// Where phrases occur in a text; case matters only beyond ASCII.
fn phrases(lower: &str, list: List) -> Vec<Range<usize>> {
    let places =
        |phrase: &'static str| lower.match_indices(phrase).map(|(start, found)| start..start + found.len());
    list.iter().flat_map(places).collect()
}

/// The words of a text with their offsets.
pub(super) fn words(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut start = 0;
    text.split_inclusive(|c: char| !c.is_alphanumeric()).filter_map(move |piece| {
        let place = start;
        start += piece.len();
        let word = piece.trim_end_matches(|c: char| !c.is_alphanumeric());
        (!word.is_empty()).then_some((place, word))
    })
}

/// The ranges in which a line mentions a code to type in.
pub(super) fn code_ranges(line: &str) -> Vec<Range<usize>> {
    let lower = line.to_ascii_lowercase();
    let other = phrases(&lower, OTHER_CODES);
    let by_phrase = phrases(&lower, CODE_PHRASES);
    let by_word =
        words(line).filter(|(_, word)| is_code_word(word)).map(|(start, word)| start..start + word.len());
    by_phrase
        .into_iter()
        .chain(by_word)
        .filter(|place| !other.iter().any(|other| other.start < place.end && place.start < other.end))
        .collect()
}

fn is_code_word(word: &str) -> bool {
    let lower = word.to_lowercase();
    if OTHER_WORDS.has(&lower) {
        return false;
    }
    word == "TAN" || CODE_WORDS.has(&lower) || CODE_ENDINGS.iter().any(|ending| lower.ends_with(ending))
}

/// Lower case, with the Turkish capital i as a plain one.
fn lower(text: &str) -> String {
    text.to_lowercase().replace("i\u{307}", "i")
}

/// Whether a text is about signing up or in.
pub(super) fn speaks_of_sign_up(text: &str) -> bool {
    SIGN_UP.occurs_in(&lower(text))
}

/// Whether a text is about an offer.
pub(super) fn speaks_of_offer(text: &str) -> bool {
    OFFERS.occurs_in(&lower(text))
}

/// Whether the text before a number says that it is something else than a code.
pub(super) fn names_other_number(before: &str) -> bool {
    let last = words(before).map(|(_, word)| word).collect::<Vec<_>>();
    let near = last.iter().rev().take(3).map(|word| word.to_lowercase());
    // A word for code nearer than the other word wins, as in "for account x: code 123456", and so does a number that
    // the other word already belongs to, as in "the code for order 4711 is 123456".
    for (distance, word) in near.enumerate() {
        let is_other_number = distance > 0 && word.bytes().all(|byte| byte.is_ascii_digit());
        if is_other_number || is_code_word(&word) {
            return false;
        }
        if OTHER_NUMBERS.has(&word) {
            return true;
        }
    }
    let tail: String = before.chars().rev().take(8).collect::<Vec<_>>().into_iter().rev().collect();
    code_ranges(&tail).is_empty() && OTHER_NUMBERS_JOINED.occurs_in(&tail)
}

/// Whether the text after a number says that it counts something.
pub(super) fn names_unit(after: &str) -> bool {
    words(after).next().is_some_and(|(start, word)| start <= 1 && UNITS.has(&word.to_lowercase()))
}
