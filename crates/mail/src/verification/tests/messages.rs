//! The messages. All are written for these tests; no service sent them.

/// A message and what must be found in it.
pub(super) struct SampleMessage {
    pub(super) subject: &'static str,
    pub(super) text: &'static str,
    pub(super) codes: &'static [&'static str],
    pub(super) links: &'static [&'static str],
}

const fn code(subject: &'static str, text: &'static str, codes: &'static [&'static str]) -> SampleMessage {
    SampleMessage { subject, text, codes, links: &[] }
}

const fn link(subject: &'static str, text: &'static str, links: &'static [&'static str]) -> SampleMessage {
    SampleMessage { subject, text, codes: &[], links }
}

const fn nothing(subject: &'static str, text: &'static str) -> SampleMessage {
    SampleMessage { subject, text, codes: &[], links: &[] }
}

/// Messages that carry a code or a link.
pub(super) const SIGN_UP_MESSAGES: &[SampleMessage] = &[
    code(
        "Your verification code",
        "Your verification code is 482913. It expires in 10 minutes.",
        &["482913"],
    ),
    code("482913 is your code", "Enter it to sign in.\n\n© 2026 Acme Inc.", &["482913"]),
    code(
        "Sign in to Acme",
        "Hi Ann,\n\nUse this code to sign in:\n\n77 12 90\n\nThis code expires in 15 minutes.",
        &["771290"],
    ),
    code(
        "Acme login",
        "Your one-time password\n\n903 114\n\nIf this was not you, call 0800 123 456.",
        &["903114"],
    ),
    code("Confirm your email", "Please enter the following code:\n\n1 2 3 4 5 6", &["123456"]),
    code("G-482913 is your verification code", "G-482913 is your verification code.", &["G-482913"]),
    code("Your device code", "Enter this code on your device: ABCD-1234", &["ABCD-1234"]),
    code(
        "Slackish confirmation code: KXQ-P7W",
        "Your confirmation code is below.\n\nKXQ-P7W\n\nQuestions? Visit help.",
        &["KXQ-P7W"],
    ),
    code("Security code", "Security code: 7741\n\nOrder 998877 is not affected.", &["7741"]),
    code(
        "Login attempt",
        "Someone tried to log in. Your OTP is 55120987. Valid until 12:30 on 14.07.2026.",
        &["55120987"],
    ),
    code("Log in", "Use 4821 as your login code. The code is valid for 3600 seconds.", &["4821"]),
    code("Acme", "Your one-time code for order 4711 is 889900.", &["889900"]),
    code("登录", "验证码 771203，3600秒内有效。", &["771203"]),
    code("Your PIN", "PIN: 8841", &["8841"]),
    code(
        "Two-factor authentication",
        "Authentication code\n\n019283\n\nAcme, 1 Main Street, Springfield 62704",
        &["019283"],
    ),
    code("Verify your account", "Hello!\n\n305-771\n\nis your verification code.", &["305771"]),
    code(
        "Your login code",
        "<p>Your login code:</p><h1>664 201</h1><p>It is valid for 5 minutes.</p>",
        &["664201"],
    ),
    code(
        "Acme code",
        "<table><tr><td>Your sign-in code</td></tr><tr><td>4</td><td>9</td><td>0</td><td>2</td><td>1</td><td>7</td></tr></table>",
        &["490217"],
    ),
    code(
        "Verification",
        "<div style='display:none'>Order 111222</div><p>Code: <b>A1B2C3</b></p>",
        &["A1B2C3"],
    ),
    code("Confirm", "To confirm your identity, use the code 2024 within 10 minutes. © 2026 Acme", &["2024"]),
    code("Your temporary code", "Your temporary code is x7Kp92.", &["x7Kp92"]),
    code(
        "Ihr Bestätigungscode",
        "Ihr Bestätigungscode lautet: 339201\n\nBestellnummer 20260714",
        &["339201"],
    ),
    code(
        "Anmeldung",
        "Hallo Frau Meier,\n\nIhr Sicherheitscode für die Anmeldung:\n\n5561\n\nTelefon 030 123456",
        &["5561"],
    ),
    code("Ihre TAN", "Ihre TAN lautet 771204. Betrag: 120,00 EUR", &["771204"]),
    code(
        "Votre code de vérification",
        "Votre code de vérification est 604418. Il expire dans 10 minutes.",
        &["604418"],
    ),
    code("Connexion", "Bonjour,\n\nVoici votre code à usage unique :\n\n881 203\n\n75001 Paris", &["881203"]),
    code("Tu código de verificación", "Tu código de verificación es 190374. No lo compartas.", &["190374"]),
    code("Inicio de sesión", "Introduce este código para iniciar sesión: 5521", &["5521"]),
    code("Seu código de acesso", "Seu código de acesso é 447821.", &["447821"]),
    code("Confirmação", "Use o código abaixo para confirmar seu e-mail:\n\n902817", &["902817"]),
    code("Il tuo codice di verifica", "Il tuo codice di verifica è 330912", &["330912"]),
    code("Accesso", "Ecco il codice per accedere:\n\n77 41 20", &["774120"]),
    code("Je verificatiecode", "Je verificatiecode is 118822. Deze is 10 minuten geldig.", &["118822"]),
    code("Inloggen", "Gebruik deze code om in te loggen:\n\n4490", &["4490"]),
    code("验证码", "您的验证码是123456，请在10分钟内输入。", &["123456"]),
    code("登录验证", "【示例】验证码：880213，用于登录，请勿泄露。", &["880213"]),
    code("認証コードのお知らせ", "認証コード：４８２９１３\n有効期限は10分です。", &["482913"]),
    code("ログイン", "確認コードは 771 204 です。", &["771204"]),
    code("인증번호 안내", "인증번호 [550912]를 입력해 주세요.", &["550912"]),
    code("로그인", "인증 코드\n\n884102\n\n10분 안에 입력하세요.", &["884102"]),
    code("Код подтверждения", "Ваш код подтверждения: 662019. Никому его не сообщайте.", &["662019"]),
    code("Вход в аккаунт", "Код для входа\n\n40 91 22\n\nЗаказ 123456 в пути.", &["409122"]),
    code("Doğrulama kodu", "Doğrulama kodunuz: 771029", &["771029"]),
    code("Giriş", "Giriş yapmak için tek kullanımlık şifreniz 339120.", &["339120"]),
    code("Twój kod weryfikacyjny", "Twój kod weryfikacyjny to 440981", &["440981"]),
    code("Din verifieringskod", "Din verifieringskod är 552013.", &["552013"]),
    link(
        "Verify your email",
        "<p>Welcome!</p><a href='https://acme.example/verify?token=8f7d6a5b4c3e'>Verify email</a>\
         <a href='https://acme.example/unsubscribe?u=1'>Unsubscribe</a><a href='https://acme.example/help'>Help</a>",
        &["https://acme.example/verify?token=8f7d6a5b4c3e"],
    ),
    link(
        "Confirm your account",
        "Please confirm your address:\nhttps://acme.example/confirm/9b1deb4d3b7d4bad9bdd2b0d7b3dcb6d\n\nPrivacy: https://acme.example/privacy",
        &["https://acme.example/confirm/9b1deb4d3b7d4bad9bdd2b0d7b3dcb6d"],
    ),
    link(
        "Your magic link",
        "<a href='https://app.example/auth/callback?token=abc123def456'>Sign in to Acme</a> <a href='https://twitter.com/acme'>Twitter</a>",
        &["https://app.example/auth/callback?token=abc123def456"],
    ),
    link(
        "Reset your password",
        "<a href='https://u1.ct.mail.example/ls/click?upn=u001.Abc123Def456Ghi789Jkl'>Reset password</a>",
        &["https://u1.ct.mail.example/ls/click?upn=u001.Abc123Def456Ghi789Jkl"],
    ),
    link(
        "Bob invited you to Acme",
        "<a href='https://acme.example/invite/aGVsbG8td29ybGQtMTIzNDU2'>Accept invitation</a><a href='https://acme.example/blog'>Blog</a>",
        &["https://acme.example/invite/aGVsbG8td29ybGQtMTIzNDU2"],
    ),
    link(
        "Bitte bestätigen Sie Ihre E-Mail-Adresse",
        "<a href='https://firma.example/optin?key=55aa66bb77cc'>E-Mail-Adresse bestätigen</a> <a href='https://firma.example/impressum'>Impressum</a>",
        &["https://firma.example/optin?key=55aa66bb77cc"],
    ),
    link(
        "Confirmez votre adresse",
        "<a href='https://site.example/activation/1234567890abcdef12345678'>Activer mon compte</a>",
        &["https://site.example/activation/1234567890abcdef12345678"],
    ),
    link(
        "激活您的账户",
        "<a href='https://cn.example/activate?code=abcdef123456'>激活账户</a>",
        &["https://cn.example/activate?code=abcdef123456"],
    ),
    link(
        "ご登録の確認",
        "<a href='https://jp.example/confirm?token=zyx987wvu654'>登録を完了する</a>",
        &["https://jp.example/confirm?token=zyx987wvu654"],
    ),
    link(
        "Подтвердите адрес",
        "<a href='https://ru.example/confirm?t=qwerty123456'>Подтвердить</a>",
        &["https://ru.example/confirm?t=qwerty123456"],
    ),
    link("Verify your email", "https://acme.test/v/abcdef", &["https://acme.test/v/abcdef"]),
    link(
        "Activate your account",
        "Hello,\n\nhttps://acme.test/v/abcdef\n\nAcme, https://acme.test/\nhttps://acme.test/privacy",
        &["https://acme.test/v/abcdef"],
    ),
    link(
        "Welcome",
        "Please confirm your address by visiting https://acme.test/c?id=5",
        &["https://acme.test/c?id=5"],
    ),
    link(
        "Welcome",
        "<a href='https://acme.test/c?id=5'>Confirm your email address</a> <a href='https://acme.test/shop'>Shop</a>",
        &["https://acme.test/c?id=5"],
    ),
    link(
        "Log in to Acme",
        "<a href='https://acme.test/x/XYZ'>Click here to log in</a>",
        &["https://acme.test/x/XYZ"],
    ),
    link("Log in", "Click https://acme.test/magic/XYZ to log in.", &["https://acme.test/magic/XYZ"]),
    SampleMessage {
        subject: "Sign in to Acme",
        text: "<p>Your code is <b>661204</b></p><p>or</p><a href='https://acme.example/login?token=661204aabbcc'>Sign in</a>",
        codes: &["661204"],
        links: &["https://acme.example/login?token=661204aabbcc"],
    },
];

/// Messages that carry neither.
pub(super) const OTHER_MESSAGES: &[SampleMessage] = &[
    nothing("Your order 123456", "Thank you for your order. Order number: 123456. Total: $49.99"),
    nothing("Invoice 20260714", "Invoice no. 20260714 of 14 July 2026 over 1200 EUR is due."),
    nothing("Your parcel is on its way", "Tracking number 00340434 is with DHL. Tracking code: 8812345678"),
    nothing("Summer sale", "Use promo code 202620 at checkout and get 20% off!"),
    nothing("20% off", "Use code SAVE20 at checkout."),
    nothing("A gift", "Your discount code:\n\nWELCOME15\n\nRedeem it until 2026-12-31."),
    nothing("Lunch?", "Shall we meet at 12:30 on 14.07.2026? Call me: +49 30 123456 or 0171 2345678."),
    nothing(
        "Newsletter",
        "In 2025 we grew to 12000 customers.\n\n© 2026 Acme Inc., 1 Main St, Springfield 62704",
    ),
    nothing("Visit us", "Our address: Hauptstraße 5, 10115 Berlin. PLZ 10115. Postal code 10115"),
    nothing("Your booking", "Booking reference: ABC123. Flight LH1234 on 20260714, seat 24A."),
    nothing("Ticket update", "Case 00123456 was updated. Your ticket number is 445566."),
    nothing("Payment received", "You paid 1250.00 USD with the card ending in 4242."),
    nothing("Build failed", "Error code 5003 in version 2024.1, build 10442. Status code 5001."),
    nothing("Code review", "Please review pull request 48213. The source code is 12000 lines long."),
    nothing("Design", "The header uses the colour #112233 and #a1b2c3."),
    nothing("Minutes of the meeting", "2024\n\n2025\n\n2026\n\nRevenue: 100000 / 120000 / 140000"),
    nothing(
        "Ihre Bestellung",
        "Bestellnummer: 4711223\nKundennummer: 998877\nRechnungsbetrag: 49,90 €\nPLZ: 80331",
    ),
    nothing("Votre commande", "Commande 554433. Code postal 75001. Code promo ETE2026."),
    nothing("Su pedido", "Pedido 889911, código postal 28013, teléfono 912345678."),
    nothing("订单通知", "您的订单号123456789已发货，快递单号9988776655。"),
    nothing("ご注文", "注文番号：12345678 郵便番号 1000001 お電話 0312345678"),
    nothing("주문 안내", "주문번호 20260714 금액 15000원"),
    nothing("Ваш заказ", "Заказ 778899 на сумму 4500 руб. Телефон 88001234567"),
    nothing("Siparişiniz", "Sipariş numarası 556677. İndirim kodu: YAZ2026"),
    nothing(
        "Security newsletter",
        "Read our report: 4500 companies were attacked in 2025. https://news.example/report-2025",
    ),
    nothing(
        "Weekly digest",
        "<a href='https://news.example/articles/42'>Read more</a> <a href='https://news.example/login'>Log in</a>",
    ),
    nothing(
        "Product update",
        "<a href='https://acme.example/blog/verify-your-models'>How we verify models</a>",
    ),
    nothing("Follow us", "<a href='https://www.facebook.com/acme'>Confirm you like us</a>"),
    nothing(
        "Manage your mail",
        "<a href='https://acme.example/preferences?token=abcdef1234567890abcd'>Confirm preferences</a>",
    ),
    nothing("FedEx", "FedEx code 20261115 verification"),
    nothing("Your code", "Your verification code:\n\n15112026"),
    nothing("Order confirmation", "Thank you! https://shop.test/orders/4711"),
    nothing("Verify your email", "Thank you for verifying it. Visit https://acme.test/ or https://acme.test"),
    nothing("Confirm your account", "https://acme.test/one and https://acme.test/two"),
    nothing(
        "New sign-in from Chrome",
        "<a href='https://acme.test/devices'>Log in to review it</a> or https://acme.test/devices",
    ),
    nothing("Welcome", "We verified your email address. Look around: https://acme.test/tour"),
    nothing("Log in to Acme", "<a href='https://acme.test/'>Log in</a>"),
    nothing("Contact", "To get a new code call Telefon 030 123456."),
    nothing("Conference", "Join us at Code 2024 in Berlin."),
    nothing("Monitoring", "The server answered with HTTP code 4040 and return code 1234."),
    nothing("Receipt", "Receipt 1234567 - 2 items - Total 5999 JPY"),
    nothing("Dinner", "I will bring 4 bottles. My door code changed, ask Bob."),
    nothing("Statement", "Account 12345678, sort code 20-30-40, balance 1034.22"),
];
