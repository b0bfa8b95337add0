import { createHmac } from "node:crypto";

/**
 * Standard Webhooks: the id is the same at every attempt, the time is that of the attempt, and each secret gives a
 * signature, so that a receiver may change from one to the next without missing a message.
 */
export function signatureHeaders(
  secrets: readonly Buffer[],
  id: string,
  body: Uint8Array,
  nowMs: number,
): Readonly<Record<string, string>> {
  const webhookId = safeId(id);
  const seconds = String(Math.floor(nowMs / 1_000));
  const signatures = secrets.map((secret) => {
    const digest = createHmac("sha256", secret).update(`${webhookId}.${seconds}.`).update(body).digest("base64");
    return `v1,${digest}`;
  });
  return {
    "webhook-id": webhookId,
    "webhook-timestamp": seconds,
    "webhook-signature": signatures.join(" "),
  };
}

/** The bytes of a `whsec_…` secret; the configuration reader has checked them. */
export function secretBytes(secret: string): Buffer {
  return Buffer.from(secret.replace(/^whsec_/, ""), "base64");
}

/**
 * The signed text separates its parts by dots, so that an id must have none; nor may a header have just any character.
 */
function safeId(id: string): string {
  return /^[\w@:/=+-]+$/.test(id) ? id : `b64_${Buffer.from(id, "utf8").toString("base64url")}`;
}
