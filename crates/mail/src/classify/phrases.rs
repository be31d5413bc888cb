//! The phrases that carry points, in English, German, French and Spanish, in lower case and without accents.

use std::collections::HashMap;
use std::sync::LazyLock;

/// What a phrase says about a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Signal {
    /// A customer needs help.
    Support,
    /// It is about software or machines.
    Technical,
    /// Something is down or broken for everybody.
    Incident,
    /// Business together.
    Partnership,
    /// It cannot wait.
    Urgent,
    /// It can wait, or it is over.
    Calm,
    /// It is advertising or a newsletter.
    Bulk,
}

impl Signal {
    /// How many there are.
    pub(super) const COUNT: usize = 7;
}

/// A phrase after its first word.
pub(super) struct Phrase {
    /// Its index in the whole list.
    pub(super) number: usize,
    /// Its words after the first.
    pub(super) rest: &'static str,
    pub(super) signal: Signal,
    pub(super) points: i32,
}

/// The phrases that begin with a word; a plain plural counts as its singular.
pub(super) fn beginning_with(word: &str) -> &'static [Phrase] {
    // Most words of any text are none of these; what has a length that no first word has need not be hashed.
    let bit = |length: usize| 1u64.checked_shl(u32::try_from(length).unwrap_or(u32::MAX)).unwrap_or_default();
    let first = word.as_bytes().first().copied().unwrap_or_default();
    let lengths = PHRASES.lengths.get(usize::from(first)).copied().unwrap_or_default();
    if lengths & (bit(word.len()) | bit(word.len().saturating_sub(1))) == 0 {
        return &[];
    }
    let singular = || word.strip_suffix('s').and_then(|word| PHRASES.by_first_word.get(word));
    PHRASES.by_first_word.get(word).or_else(singular).map_or(&[], Vec::as_slice)
}

/// How many phrases there are.
pub(super) fn phrase_count() -> usize {
    PHRASES.count
}

struct Phrases {
    by_first_word: HashMap<&'static str, Vec<Phrase>>,
    /// By first byte, a bit for each length that a first word has.
    lengths: [u64; 256],
    count: usize,
}

static PHRASES: LazyLock<Phrases> = LazyLock::new(|| {
    let mut by_first_word: HashMap<&'static str, Vec<Phrase>> = HashMap::new();
    let mut lengths = [0u64; 256];
    let mut count = 0;
    for (signal, points, list) in LISTS {
        for phrase in list.split(',').map(str::trim).filter(|phrase| !phrase.is_empty()) {
            let (first, rest) = phrase.split_once(' ').unwrap_or((phrase, ""));
            if let Some(bits) = first.bytes().next().and_then(|byte| lengths.get_mut(usize::from(byte))) {
                *bits |= 1 << first.len().min(63);
            }
            by_first_word.entry(first).or_default().push(Phrase { number: count, rest, signal, points });
            count += 1;
        }
    }
    Phrases { by_first_word, lengths, count }
});

const LISTS: [(Signal, i32, &str); 19] = [
    (
        Signal::Support,
        3,
        "refund, my refund, refunded, money back, chargeback, charged twice, double charged, wrong item, wrong order,
        missing item, missing package, never arrived, not arrived, damaged, cancel my, cancel subscription,
        cancel order, forgot my password, reset my password, password reset not, locked out, cannot log in,
        can t log in, cant log in, cannot login, unable to log in, unable to login, can t sign in, cannot sign in,
        unable to sign in, complaint, my order, my account, my subscription, my invoice, my bill, my delivery,
        my parcel, my package, my shipment, return label, exchange it, replacement, warranty, billing question,
        billing issue, order status, track my, where is my, update my address, change my address, customer service,
        customer support, support ticket, support request,
        ruckerstattung, erstattung, reklamation, meine bestellung, meiner bestellung, mein konto, meinem konto,
        meine rechnung, meiner rechnung, mein paket, kundigen, kundigung, stornieren, stornierung, umtausch,
        retoure, beschadigt, passwort vergessen, nicht einloggen, nicht anmelden, nicht angekommen, falscher artikel,
        falsche ware, doppelt abgebucht, geld zuruck, gewahrleistung, kundenservice, kundendienst,
        remboursement, rembourser, reclamation, ma commande, mon compte, ma facture, mon colis, mon abonnement,
        resilier, resiliation, annuler ma, mot de passe oublie, me connecter, pas recu, jamais arrive,
        mauvais article, endommage, debite deux fois, service client, sous garantie,
        reembolso, devolucion, reclamacion, queja, mi pedido, mi cuenta, mi factura, mi paquete, mi suscripcion,
        cancelar mi, darme de baja, olvide mi contrasena, iniciar sesion, no ha llegado, no he recibido,
        articulo equivocado, danado, cobrado dos veces, atencion al cliente, garantia",
    ),
    (
        Signal::Support,
        2,
        "help with, need help, please help, can you help, how do i, how can i, not satisfied, disappointed, unhappy,
        return, subscription, receipt, order number, shipping, delivery, tracking number, invoice question,
        problem with my, issue with my, question about my, question about your product, upgrade my plan, my plan,
        downgrade, trial, hilfe, brauche hilfe, wie kann ich, unzufrieden, bestellung, bestellnummer, lieferung, sendung,
        versand, rechnung, frage zu meiner, problem mit meiner, aide, besoin d aide, comment puis je, decu, commande,
        livraison, facture, question sur ma, probleme avec ma, ayuda, necesito ayuda, como puedo, decepcionado,
        pedido, envio, entrega, factura, problema con mi, pregunta sobre mi",
    ),
    (
        Signal::Technical,
        4,
        "bug report, stack trace, stacktrace, traceback, segfault, segmentation fault, null pointer, memory leak,
        race condition, regression, pull request, merge request, build failed, pipeline failed, deployment failed,
        failed deployment, tests failed, unit test, rate limit, webhook, endpoint, api key, rest api, graphql, sdk,
        oauth, ssl certificate, tls certificate, certificate expires, certificate will expire, dns record, vulnerability,
        security vulnerability, cve, xss, sql injection, remote code execution, proof of concept, data breach,
        http 500, http 502, http 503, error 500, 500 error, 502 bad gateway, 503 service, internal server error,
        status code, timeout error, exception, crash, crashes, kubernetes, docker, postgresql, database migration,
        disk space, cpu usage, disk usage, high cpu, replication lag, firmware,
        fehlermeldung, fehlerbericht, absturz, sturzt ab, schnittstelle, sicherheitslucke, zertifikat, serverfehler,
        datenbank, message d erreur, rapport de bug, plantage, plante, faille de securite, base de donnees,
        erreur serveur, mensaje de error, informe de error, se bloquea, vulnerabilidad, base de datos,
        error del servidor, certificado",
    ),
    (
        Signal::Technical,
        2,
        "bug, api, integration, error, error message, server, database, deploy, deployment, release notes, backend, frontend, latency,
        timeout, log file, logs, json, config, configuration, repository, commit, branch, library, dependency, upgrade guide,
        authentication, token, script, cron, backup failed, monitoring, alert, staging, production, developer,
        technical question, documentation, sandbox environment, fehler, serverproblem, entwickler, konfiguration,
        integracion, servidor, erreur, serveur, developpeur, desarrollador, configuracion",
    ),
    (
        Signal::Incident,
        5,
        "outage, service disruption, service interruption, major incident, incident report, sev1, sev 1, sev0, p1 incident, p0,
        production is down, production down, prod is down, site is down, website is down, service is down,
        server is down, servers are down, system is down, systems are down, api is down, app is down, is completely down,
        host down, node down, health check failed, critical alert, down alert, data loss, ransomware, we have been hacked,
        under attack, nicht erreichbar, totalausfall, serverausfall, systemausfall, produktion steht, seite ist down,
        server ist down, en panne, hors service, ne repond plus, site est inaccessible, est inaccessible, interruption de service,
        panne generale, caida del servicio, esta caido, esta caida, fuera de servicio, interrupcion del servicio",
    ),
    (Signal::Incident, 3, "incident, unreachable, degraded performance, ausfall, storung, panne, incidencia, incidente"),
    (
        Signal::Partnership,
        4,
        "partnership, partner with, partnering, strategic partner, collaboration, collaborate with, collaborate on, joint venture,
        co marketing, comarketing, reseller, resell your, affiliate program, affiliate partnership, sponsorship, sponsor your, sponsor our,
        guest post, guest article, backlink exchange, link exchange, business proposal, business opportunity, business development,
        investment opportunity, invest in your, white label, distribution agreement, distributor, influencer,
        speaking opportunity, invite you to speak, media kit, letter of intent, memorandum of understanding, integration partner,
        partnerschaft, kooperation, kooperationsanfrage, zusammenarbeit, zusammenarbeiten, vertriebspartner, wiederverkaufer, geschaftsmoglichkeit,
        gemeinsames projekt, sponsoring, gastbeitrag, partenariat, collaborer, partenaire commercial, revendeur,
        proposition commerciale, opportunite commerciale, coentreprise, distributeur, alianza, asociacion comercial, colaboracion,
        colaborar, revendedor, propuesta comercial, propuesta de negocio, oportunidad de negocio, patrocinio, distribuidor,
        socio comercial",
    ),
    (
        Signal::Partnership,
        2,
        "proposal, work together, working together, synergies, synergy, mutually beneficial, explore opportunities, explore ways,
        schedule a call, introductory call, quick call, our audience, your audience, our network, joint, revenue share,
        commission, venture, investors, business cooperation, potential fit, partners, partner, vorschlag, gemeinsam, kennenlernen, ein gesprach, investoren,
        proposition, ensemble, synergie, un appel, propuesta, juntos, sinergia, sinergias, una llamada, inversores",
    ),
    (
        Signal::Urgent,
        4,
        "urgent, urgently, very urgent, emergency, asap, as soon as possible, immediate attention, immediate action, immediate response,
        time sensitive, time critical, right away, drop everything, critical issue, dringend, sehr dringend, eilt, eilig,
        notfall, schnellstmoglich, so schnell wie moglich, umgehend, urgence, en urgence, des que possible, au plus vite,
        le plus rapidement possible, urgente, urgentemente, urgencia, emergencia, lo antes posible, cuanto antes, de inmediato",
    ),
    (
        Signal::Urgent,
        2,
        "immediately, critical, by end of day, by eod, before end of day, by today, due today, deadline today, today at the latest,
        within the hour, within the next hour, final notice, last warning, high priority, top priority, blocking, blocker, blocked,
        losing money, losing customers, all customers, all users, all our users, production, legal action, our lawyer, fraud, unauthorized,
        sofort, unverzuglich, heute noch, bis heute abend, letzte mahnung, kritisch, immediatement, aujourd hui avant, avant ce soir,
        critique, dernier rappel, inmediatamente, hoy mismo, antes de hoy, critico, ultimo aviso",
    ),
    (
        Signal::Calm,
        12,
        "not urgent, non urgent, nothing urgent, no urgency, not an emergency, no rush, no hurry, not time sensitive, whenever you have time,
        when you have a moment, when you get a chance, nicht dringend, nicht eilig, eilt nicht, keine eile, pas urgent, rien d urgent, sans urgence, non urgente,
        no es urgente, no hay prisa, sin prisa",
    ),
    (
        Signal::Calm,
        6,
        "resolved, has been resolved, recovered, is back up, back online, postmortem, post mortem, scheduled maintenance, planned maintenance,
        all clear, monitoring report, weekly report, monthly report, behoben, wieder verfugbar, geplante wartung, wartungsarbeiten, resolu, retabli,
        maintenance planifiee, maintenance programmee, resuelto, restablecido, mantenimiento programado",
    ),
    (
        Signal::Bulk,
        5,
        "unsubscribe, newsletter, weekly digest, daily digest, view in browser, view this email in your browser, view online, manage preferences,
        manage your preferences, email preferences, abbestellen, abmelden vom, im browser ansehen, desabonner, se desinscrire, desinscription,
        voir dans le navigateur, darse de baja, cancelar suscripcion, ver en el navegador",
    ),
    (
        Signal::Bulk,
        4,
        "last chance, limited time, limited time offer, sale ends, flash sale, black friday, cyber monday, 20% off, 25% off, 30% off, 40% off, 50% off, 70% off,
        promo code, discount code, coupon, exclusive offer, special offer, free shipping on, join our webinar, register now, shop now,
        act now, buy now, rabattcode, gutschein, sonderangebot, nur heute, angebot endet, code promo, offre speciale, soldes, derniere chance,
        codigo promocional, oferta especial, ultima oportunidad, rebajas",
    ),
    (Signal::Bulk, 3, "you have won, congratulations you, lottery, crypto giveaway, click here to claim, seo services, rank your website"),
    (
        Signal::Bulk,
        2,
        "webinar, this week in, top stories, read more, sponsored, advertisement, follow us on, all rights reserved",
    ),
    (
        Signal::Support,
        4,
        "refund request, request a refund, request for refund, still waiting for my, ruckerstattung meiner, demande de remboursement, solicitud de reembolso",
    ),
    (
        Signal::Technical,
        3,
        "not working after update, returns an error, returning 500, returns 500, throws an, fails with, failing with, broken build, ci failed,
        integration with your, connect to your api, your api, api documentation, responsible disclosure, security issue, security report, bug bounty,
        funktioniert nicht mehr, gibt einen fehler, ne fonctionne plus, renvoie une erreur, ya no funciona, devuelve un error",
    ),
    (
        Signal::Urgent,
        3,
        "need this today, need an answer today, needs to be fixed, fix this now, must be fixed, before the deadline, brauchen heute, brauche heute,
        besoin aujourd hui, necesito hoy, necesitamos hoy",
    ),
];
