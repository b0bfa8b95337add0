/**
 * Takes a structured CloudEvent apart: its data becomes the content, its attributes those of the message, named as in
 * HTTP.
 */
import type { CloudEvent, HTTP } from "cloudevents";
import { BatonError, Fatal } from "../../domain/errors.ts";
import { isBytes, isError } from "../../domain/realms.ts";
import type { Content, Transform } from "../transform.ts";
import { objectOf } from "./json-content.ts";

interface Sdk {
  readonly CloudEvent: typeof CloudEvent;
  readonly HTTP: typeof HTTP;
}

/** Opened without its package, too: a relay names all that it lacks before it starts. */
export function openCloudEvents(): Transform {
  let loading: Promise<Sdk> | undefined;
  return {
    name: "cloudevents",
    packages: ["cloudevents"],
    async apply(content) {
      const sdk = await (loading ??= loadSdk());
      const event = eventOf(sdk, content);
      const { data, data_base64: base64, datacontenttype, ...attributes } = event.toJSON();
      const named = Object.entries(attributes).map(([name, value]) => [`ce-${name}`, String(value)] as const);
      return {
        data: typeof base64 === "string" ? Buffer.from(base64, "base64") : bytesOf(data),
        contentType: typeof datacontenttype === "string" ? datacontenttype : "application/json",
        attributes: { ...content.attributes, ...Object.fromEntries(named) },
      };
    },
  };
}

function eventOf({ HTTP: http, CloudEvent: Event }: Sdk, content: Content): CloudEvent<unknown> {
  const body = JSON.stringify(objectOf(content, "cloudevents"));
  try {
    const event = http.toEvent({ headers: { "content-type": "application/cloudevents+json" }, body });
    if (!(event instanceof Event)) throw new Error("it is a batch of events");
    event.validate();
    return event;
  } catch (cause) {
    const why = isError(cause) ? cause.message : String(cause);
    throw new Fatal(`Transform cloudevents: the message is not a valid CloudEvent: ${why}`, { cause });
  }
}

/** A text is given as it is, everything else as JSON. */
function bytesOf(data: unknown): Uint8Array {
  if (data === undefined || data === null) return new Uint8Array();
  if (isBytes(data)) return data;
  return Buffer.from(typeof data === "string" ? data : JSON.stringify(data), "utf8");
}

async function loadSdk(): Promise<Sdk> {
  try {
    return await import("cloudevents");
  } catch (cause) {
    throw new BatonError(
      "ENGINE_MISSING",
      "The transform cloudevents needs the package cloudevents, which is not installed. Nothing was done. Run: npm install cloudevents",
      { cause },
    );
  }
}
