//! Phrases that so much mail has that they tell nothing about where a text comes from.

/// Words that carry grammar rather than matter, of the languages that most mail is in.
pub(super) const GRAMMAR: &str = "a about after all also am an and any are as at be been before but by can could did do does for \
    from get had has have he her here him his how i if in into is it its just let like may me more my no not now of on one only \
    or our out over please she should since so some than that the their them then there these they this to too up us very was we \
    well were what when where which while who why will with would you your \
    aber als am an auf aus bei bin bis bitte da damit das dass dem den der des die doch du durch ein eine einem einen einer er es \
    für hat haben ich ihnen ihr ihre im in ist ja kann mehr mein mich mir mit nach nicht noch nur oder schon sehr sein sich sie \
    sind so über um und uns unser vom von vor war was wenn wie wir wird zu zum zur \
    au aux avec ce cela ces cette comme dans de depuis des du elle en est et être il ils je l la le les leur lui ma mais me mes \
    mon ne nos notre nous on ou par pas plus pour qu que qui sa se ses si son sont sur très un une vos votre vous y à \
    al como con de del donde el ella en es esta este esto ha hay la las le lo los más me mi muy no nos o para pero por que se ser \
    si sin son su sus también un una y ya";

/// Greetings, closings, footers and headers of quotes. Compared like all text: without case and punctuation.
pub(super) const PHRASES: &[&str] = &[
    "Thank you very much for your message and your quick reply",
    "Thank you so much for your email and for getting back to me so quickly",
    "Many thanks for getting back to us so quickly and for your prompt response",
    "Thanks a lot for your help with this and have a great weekend",
    "Thanks for taking the time to speak with me today it was great to meet you",
    "I am writing to you with regard to your recent order and I would like to know if",
    "I just wanted to follow up on my previous email and check if you had any updates on this",
    "Please find attached the document as discussed and let me know what you think",
    "Please see the attached file for more details and do let me know if you need anything else",
    "Looking forward to hearing from you soon have a nice day and best regards",
    "Hope you are doing well and that you had a great weekend",
    "Sorry for the late reply I have been out of the office and I am just getting back to my emails",
    "Would you be available for a quick call this week or early next week to discuss this further",
    "Please confirm receipt of this email at your earliest convenience thank you for your cooperation",
    "Vielen Dank für Ihre E-Mail und die schnelle Rückmeldung über die ich mich sehr gefreut habe",
    "Anbei erhalten Sie wie besprochen die gewünschten Unterlagen zu Ihrer Information",
    "Ich freue mich auf Ihre Rückmeldung und wünsche Ihnen ein schönes Wochenende mit freundlichen Grüßen",
    "Sollten Sie noch Fragen haben können Sie sich jederzeit gerne bei mir melden",
    "Je vous remercie par avance de votre retour et vous souhaite une bonne journée",
    "Je vous prie de trouver ci-joint le document demandé et reste à votre disposition",
    "Merci beaucoup pour votre message et votre réponse rapide bien cordialement",
    "Muchas gracias por su mensaje y por su pronta respuesta le saluda atentamente",
    "Adjunto le envío el documento solicitado y quedo a la espera de su respuesta un cordial saludo",
    "No dude en ponerse en contacto con nosotros si tiene alguna pregunta o necesita más información",
    "I hope this email finds you well and that you had a great weekend",
    "I hope this message finds you well and you are having a good week",
    "Please do not hesitate to contact me if you have any questions or need any further information",
    "Please do not hesitate to contact us if you have any questions or concerns",
    "Please let me know if you have any questions or need anything else from me",
    "Please feel free to reach out to me if you have any questions",
    "If you have any questions please do not hesitate to get in touch with us",
    "Thank you for your patience and understanding and we apologize for any inconvenience this may have caused",
    "Thank you very much in advance for your help I look forward to hearing from you soon",
    "Thank you for reaching out to us we will get back to you as soon as possible",
    "I am out of the office with limited access to email and will reply to your message upon my return",
    "This email and any attachments are confidential and intended solely for the use of the individual or entity to whom they are addressed",
    "This message and any attachments may contain confidential or privileged information and is intended only for the named recipient",
    "If you are not the intended recipient please notify the sender immediately and delete this email from your system",
    "If you are not the intended recipient you are hereby notified that any disclosure copying distribution or use of this information is strictly prohibited",
    "If you have received this email in error please notify the sender immediately and delete it",
    "Any views or opinions presented in this email are solely those of the author and do not necessarily represent those of the company",
    "Please consider the environment before printing this email",
    "You are receiving this email because you signed up for our newsletter",
    "To unsubscribe from this list or change your email preferences please click here",
    "This is an automatically generated email please do not reply to this message",
    "Diese E-Mail enthält vertrauliche und oder rechtlich geschützte Informationen",
    "Wenn Sie nicht der richtige Adressat sind oder diese E-Mail irrtümlich erhalten haben informieren Sie bitte sofort den Absender und vernichten Sie diese Mail",
    "Das unerlaubte Kopieren sowie die unbefugte Weitergabe dieser Mail ist nicht gestattet",
    "Für Rückfragen stehe ich Ihnen jederzeit gerne zur Verfügung und verbleibe mit freundlichen Grüßen",
    "Bei Fragen stehen wir Ihnen selbstverständlich jederzeit gerne zur Verfügung",
    "Vielen Dank für Ihre Nachricht wir melden uns so schnell wie möglich bei Ihnen",
    "Dies ist eine automatisch generierte Nachricht bitte antworten Sie nicht auf diese E-Mail",
    "Ce message et toutes les pièces jointes sont confidentiels et établis à l'intention exclusive de ses destinataires",
    "Si vous avez reçu ce message par erreur merci de le détruire et d'en avertir immédiatement l'expéditeur",
    "Je reste à votre disposition pour tout renseignement complémentaire et vous prie d'agréer Madame Monsieur l'expression de mes salutations distinguées",
    "N'hésitez pas à me contacter si vous avez des questions ou besoin de plus amples informations",
    "Este mensaje y sus archivos adjuntos van dirigidos exclusivamente a su destinatario y pueden contener información confidencial",
    "Si usted no es el destinatario indicado queda notificado de que la utilización divulgación o copia sin autorización está prohibida",
    "Quedo a su disposición para cualquier consulta o aclaración que necesite reciba un cordial saludo",
    "Antes de imprimir este mensaje asegúrese de que es necesario el medio ambiente está en nuestra mano",
];
