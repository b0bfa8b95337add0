import { isIP } from "node:net";
import { Fatal } from "../../../domain/errors.ts";
import type { HttpTarget, RelayMessage } from "../../settings.ts";
import { isPublicAddress } from "./addresses.ts";

type AttributeTarget = Extract<HttpTarget, { readonly type: "attribute" }>;

/**
 * Where a message says that it is to go, if it may say so. Throws `Fatal` where it may not: trying again would not
 * help.
 */
export function urlOfMessage(message: RelayMessage, target: AttributeTarget): URL {
  const wanted = target.name.toLowerCase();
  const [, text] = Object.entries(message.attributes).find(([name]) => name.toLowerCase() === wanted) ?? [];
  if (text === undefined) throw new Fatal(`The message has no attribute ${target.name} to take its URL from.`);
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url === undefined) throw new Fatal(`The attribute ${target.name} of the message is not a URL.`);
  if (url.protocol !== "https:" && !(target.plainHttp && url.protocol === "http:"))
    throw new Fatal(`The message asks for a delivery by ${url.protocol} to ${url.host}, which is not allowed.`);
  if (url.username !== "" || url.password !== "")
    throw new Fatal("The URL of the message carries a password, which is not allowed.");
  if (!target.hosts.some((pattern) => matches(url.hostname, pattern)))
    throw new Fatal(`The message asks for a delivery to ${url.hostname}, which is not among the allowed hosts.`);
  const address = url.hostname.replace(/^\[|\]$/g, "");
  // Names are checked when they are resolved.
  if (!target.privateAddresses && isIP(address) !== 0 && !isPublicAddress(address))
    throw new Fatal(`The message asks for a delivery to ${address}, which is not a public address.`);
  return url;
}

/** Exactly, or any name below: `*.example.com` has `a.example.com` and not `example.com`. */
function matches(host: string, pattern: string): boolean {
  const wanted = pattern.toLowerCase();
  return wanted.startsWith("*.") ? host.endsWith(wanted.slice(1)) && host.length >= wanted.length : host === wanted;
}
