TIME=$(date +%s)
printf 'From: Ada <ada@example.com>\r\nSubject: Your order\r\n\r\nThank you for writing.\r\n' > message.eml
SIGNATURE=$(
  { printf '%s\nada@example.com\n%s\n\n\n' "$TIME" "$MAILBOX_ADDRESS"; cat message.eml; } |
    openssl dgst -sha256 -hmac "$INBOUND_SECRET" -r | cut -d ' ' -f 1
)
curl "$AGENT_MAILBOX_URL/inbound/v1/raw" \
  -H "x-signature-time: $TIME" \
  -H "x-signature: sha256=$SIGNATURE" \
  -H "x-envelope-from: ada@example.com" \
  -H "x-envelope-to: $MAILBOX_ADDRESS" \
  -H "content-type: message/rfc822" \
  --data-binary @message.eml
