//! Decides which links confirm an address, sign a person in or accept an invitation.
//!
//! Each link gets a score from its text, its URL and the subject.

use std::collections::HashSet;

use schemars::JsonSchema;
use serde::Serialize;
use url::Url;

use super::confidence::{confidence, keep_best};
use super::vocabulary::{self, List};
use crate::safe_text::{self, VisibleLink};

/// Minimum confidence of a result.
const THRESHOLD: f64 = 0.5;

/// Links that are scored.
const MAX_LINKS: usize = 300;

/// The longest link text that is returned.
const MAX_TEXT_CHARS: usize = 200;

/// Wording of links that finish a sign-up.
const CONFIRM_PHRASES: List = List(
    "\
    verify|verif|confirm|activate|activation|validate|magic link|reset password|reset your password|\
    reset my password|set password|set your password|set a password|new password|choose a password|\
    create password|accept invit|accept the invit|join the|join team|join workspace|\
    complete registration|complete sign|complete your registration|finish signing|finish sign|\
    finish setting|opt in|yes, subscribe|bestätig|verifizier|aktivier|freischalten|\
    passwort zurücksetzen|neues passwort|einladung annehmen|vérifi|confirmer|activer|valider|\
    réinitialiser|accepter l|verificar|confirmar|activar|ativar|validar|restablecer|redefinir|\
    aceptar invit|aceitar convite|verifica|conferma|attiva|reimposta|accetta invito|accetta l|bevestig|\
    verifieer|activeer|wachtwoord|uitnodiging accepteren|验证|確認|确认|激活|驗證|重置密码|接受邀请|認証|有効化|リセット|招待を承認|\
    登録を完了|인증|확인|활성화|재설정|초대 수락|подтверд|активир|сброс|принять приглашение|doğrula|onayla|etkinleştir|\
    sıfırla|daveti kabul|potwierd|aktywuj|bekräfta|bekræft|bekreft|vahvista",
);

/// Wording of links that sign in; alone it is too common to count.
const SIGN_IN_PHRASES: List = List(
    "\
    log in|login|sign in|sign-in|anmelden|einloggen|connecter|connexion|iniciar sesión|entrar|acceder|\
    accedi|inloggen|登录|登入|ログイン|로그인|войти|вход|giriş|zaloguj|logga in|get started|continue|click here|\
    hier klicken|cliquez ici|haz clic|clique aqui|clicca qui",
);

/// Words in paths of links that finish a sign-up or sign in.
const SIGN_UP_PATH_WORDS: List = List(
    "\
    verify|verif|confirm|activate|activation|validate|validation|magic|login|signin|sign-in|sign_in|\
    log-in|auth|reset|password|invite|invitation|accept|register|signup|sign-up|optin|opt-in|double-opt|\
    onboarding|bestaetigen|token|otp|passwordless|sso|join",
);

/// Names of parameters that carry a secret.
const SECRET_PARAMETERS: List = List(
    "\
    token|code|key|confirmation_token|oobcode|ticket|otp|hash|sig|signature|nonce|secret|\
    reset_password_token|verification_token|invitation_token|activation|confirm|verify|t|k|c|jwt|\
    access_token|login_token|magic|state|uid|tk|upn",
);

/// Wording and paths of links that are no sign-up links.
const OTHER_LINK_PHRASES: List = List(
    "\
    unsubscribe|unsub|opt-out|optout|opt out|preferences|manage notif|notification settings|\
    email settings|privacy|terms|legal|imprint|impressum|datenschutz|help center|help-center|/help|\
    help.|support.|/support|contact us|/contact|faq|view in browser|view this email|webversion|\
    web version|view online|im browser|not you|wasn't you|wasn't me|not me|didn't request|\
    did not request|report|abmelden vom|newsletter abmelden|abbestellen|désabonner|désinscri|\
    darse de baja|cancelar suscrip|cancelar inscri|descadastr|disiscriv|cancella iscrizione|afmelden|\
    uitschrijven|退订|取消订阅|配信停止|수신거부|отписат|abonelik|learn more|read more|download the app|blog|\
    secure your account|delete account|cancel",
);

/// Hosts that sign-up links never lead to.
const OTHER_HOSTS: List = List(
    "\
    facebook.com|twitter.com|x.com|linkedin.com|instagram.com|youtube.com|tiktok.com|pinterest.com|\
    apps.apple.com|itunes.apple.com|play.google.com|t.me|wa.me|w3.org|schema.org|threads.net",
);

/// What a sign-up confirms: without one of these, confirm wording may be about anything.
const CONFIRMATION_OBJECTS: List = List(
    "\
    email|e-mail|mail address|address|account|identity|registration|subscription|sign-up|signup|adresse|\
    konto|anmeldung|registrierung|compte|inscription|correo|dirección|cuenta|registro|conta|endereço|\
    cadastro|indirizzo|registrazione|mailadres|邮箱|账户|帐户|账号|信箱|帳戶|アカウント|メール|登録|이메일|계정|адрес|почт|\
    аккаунт|регистрац|hesab|e-posta|adres|konta|kontot",
);

/// Wording for something already done, or for a purchase.
const COMPLETED_PHRASES: List = List(
    "\
    confirmed|confirmation of|verified|activated|validated|bestätigt|confirmé|verificad|confirmad|\
    confermat|bevestigd|order|booking|reservation|payment|invoice|purchase|shipping|shipment|deliver|\
    billing|bestellung|buchung|rechnung|lieferadresse|commande|facture|livraison|pedido|factura|fatura|\
    ordine|fattura|заказ|订单|注文|주문|sipariş",
);

/// How subjects begin that ask to sign in; alerts about a sign-in begin otherwise.
const SIGN_IN_SUBJECTS: List = List(
    "\
    log in|login to|login link|your login link|sign in|sign-in link|your sign-in link|your sign in link|\
    magic link|your magic link|anmelden|einloggen|ihr anmeldelink|connectez-vous|votre lien de connexion|\
    inicia sesión|iniciar sesión|entrar |accedi|inloggen|войти|вход|giriş yap|登录|登入|ログイン|로그인",
);

/// A link.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Link {
    /// Where it leads.
    pub url: String,
    /// The host of that, in its ASCII form.
    pub host: String,
    /// What it says.
    pub text: String,
    /// How likely it is the one to follow, from 0 to 1.
    pub confidence: f64,
}

/// A link with the text around it.
struct LinkContext {
    link: VisibleLink,
    /// The rest of the sentence after an address in plain text.
    after: String,
}

/// What the subject says about the links of its message.
struct Subject {
    about_sign_up: bool,
    asks_to_confirm: bool,
    asks_to_sign_in: bool,
}

impl Subject {
    fn new(subject: &str) -> Self {
        let lower = subject.to_lowercase();
        Self {
            about_sign_up: vocabulary::speaks_of_sign_up(subject) || CONFIRM_PHRASES.occurs_in(&lower),
            asks_to_confirm: asks_to_confirm(&lower),
            asks_to_sign_in: SIGN_IN_SUBJECTS.begins(lower.trim_start()),
        }
    }
}

/// Finds the links of a message.
pub(super) fn find(subject: &str, text: &str, html: Option<&str>) -> Vec<Link> {
    let seen = html.map(safe_text::visible_links).filter(|links| !links.is_empty()).map_or_else(
        || links_in_text(text),
        |links| links.into_iter().map(|link| LinkContext { link, after: String::new() }).collect(),
    );
    let subject = Subject::new(subject);
    let candidates: Vec<(LinkContext, Url)> =
        seen.into_iter().take(MAX_LINKS).filter_map(candidate).collect();
    let targets: HashSet<&str> = candidates.iter().map(|(_, url)| url.as_str()).collect();
    // A message that asks to confirm an address and has a single target means that one, whatever its text.
    let is_sole = targets.len() == 1 && subject.asks_to_confirm;
    let mut urls = HashSet::new();
    let mut found = Vec::new();
    for (LinkContext { link, after }, url) in candidates {
        let score = score(&url, &format!("{} {after}", link.text), &subject, is_sole);
        let Some(host) = url.host_str().filter(|_| score >= THRESHOLD) else { continue };
        if urls.insert(link.url.clone()) {
            let text = link.text.chars().take(MAX_TEXT_CHARS).collect();
            found.push(Link { host: host.to_owned(), url: link.url, text, confidence: confidence(score) });
        }
    }
    keep_best(found, |link: &Link| link.confidence)
}

/// A web link that is not recognisably something else.
fn candidate(context: LinkContext) -> Option<(LinkContext, Url)> {
    let url = Url::parse(&context.link.url).ok().filter(|url| matches!(url.scheme(), "http" | "https"))?;
    let host = host(&url);
    let address = format!("{host}{}", url.path().to_ascii_lowercase());
    let is_other = is_front_page(&url)
        || is_other_host(host)
        || OTHER_LINK_PHRASES.occurs_in(&context.link.text.to_lowercase())
        || OTHER_LINK_PHRASES.occurs_in(&address);
    (!is_other).then_some((context, url))
}

fn host(url: &Url) -> &str {
    url.host_str().unwrap_or_default().trim_start_matches("www.")
}

/// The URLs in plain text; the text of each is what precedes it, or the line above.
fn links_in_text(text: &str) -> Vec<LinkContext> {
    let mut links = Vec::new();
    let mut above = "";
    for line in text.lines().filter(|line| !line.is_empty()) {
        let mut rest = line;
        while let Some(start) = address_in(rest) {
            let (before, address) = rest.split_at_checked(start).unwrap_or((rest, ""));
            let end = address.find([' ', '"', '>', '<', '|']).unwrap_or(address.len());
            let (url, after) = address.split_at_checked(end).unwrap_or((address, ""));
            let label = before.trim_matches([' ', '(', '<', ':', '[', '-']);
            let label = if label.is_empty() { above } else { label };
            if links.len() < MAX_LINKS {
                let bare = url.trim_end_matches(['.', ',', ')', ']', ';', '!']);
                let ends_sentence = url.ends_with(['.', ';', '!']);
                let after = if ends_sentence { "" } else { rest_of_sentence(after) };
                let link =
                    VisibleLink { text: label.chars().take(MAX_TEXT_CHARS).collect(), url: bare.to_owned() };
                links.push(LinkContext { link, after: after.chars().take(MAX_TEXT_CHARS).collect() });
            }
            rest = after;
        }
        above = line;
    }
    links
}

fn address_in(text: &str) -> Option<usize> {
    text.find("https://").or_else(|| text.find("http://"))
}

/// The text that belongs to a preceding URL: the sentence up to its end or to the next URL.
fn rest_of_sentence(after: &str) -> &str {
    let end = address_in(after).unwrap_or(after.len());
    let until = after.get(..end).unwrap_or_default();
    until.split(['.', '!', '?', ';', '。']).next().unwrap_or_default()
}

/// Whether a text in lower case asks to confirm an address or an account.
fn asks_to_confirm(lower: &str) -> bool {
    CONFIRM_PHRASES.occurs_in(lower)
        && CONFIRMATION_OBJECTS.occurs_in(lower)
        && !COMPLETED_PHRASES.occurs_in(lower)
}

/// Whether a URL is the home page of a site, which cannot identify a user.
fn is_front_page(url: &Url) -> bool {
    url.path().len() <= 1 && url.query().is_none() && url.fragment().is_none()
}

fn score(url: &Url, context: &str, subject: &Subject, is_sole: bool) -> f64 {
    let context = context.to_lowercase();
    let confirms = CONFIRM_PHRASES.occurs_in(&context);
    let signs_in = SIGN_IN_PHRASES.occurs_in(&context);
    let asks = asks_to_confirm(&context);
    let path_speaks = SIGN_UP_PATH_WORDS.occurs_in(&url.path().to_ascii_lowercase());
    let secret = has_secret(url);
    if !path_speaks && !secret && !subject.about_sign_up && !asks {
        return 0.0;
    }
    let by_text = if confirms {
        0.5
    } else if signs_in {
        0.25
    } else {
        0.0
    };
    let as_told = subject.asks_to_sign_in && signs_in;
    let add = |holds: bool, weight: f64| if holds { weight } else { 0.0 };
    by_text
        + add(path_speaks, 0.22)
        + add(secret, 0.2)
        + add(subject.about_sign_up, 0.12)
        + add(asks, 0.08)
        + add(as_told, 0.2)
        + add(is_sole, 0.4)
}

/// Whether a host, or the domain that it belongs to, is one of those.
fn is_other_host(host: &str) -> bool {
    let domains = host.match_indices('.').filter_map(|(dot, _)| host.get(dot + 1..));
    std::iter::once(host).chain(domains).any(|domain| OTHER_HOSTS.has(domain))
}

/// Whether a URL contains a secret.
fn has_secret(url: &Url) -> bool {
    let in_query = url.query_pairs().take(32).any(|(name, value)| {
        let named = SECRET_PARAMETERS.has(&name.to_ascii_lowercase()) && value.len() >= 6;
        named || looks_random(&value)
    });
    in_query
        || url.path_segments().into_iter().flatten().take(32).any(looks_random)
        || url.fragment().is_some_and(|fragment| fragment.split(['/', '=', '&']).any(looks_random))
}

fn looks_random(text: &str) -> bool {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b'~' | b'%');
    let digits = text.bytes().filter(u8::is_ascii_digit).count();
    let letters = text.bytes().filter(u8::is_ascii_alphabetic).count();
    text.len() >= 20 && text.bytes().all(allowed) && digits >= 2 && letters >= 4
}
