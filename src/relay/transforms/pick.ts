import { Fatal } from "../../domain/errors.ts";
import type { Transform } from "../transform.ts";
import { jsonOf } from "./json-content.ts";
import { atPointer } from "./json-pointer.ts";

/** A part of a JSON message: a text as it is, everything else as JSON. */
export function pick(pointer: string): Transform {
  return {
    name: "pick",
    apply(content) {
      const found = atPointer(jsonOf(content, "pick"), pointer);
      if (found === undefined) throw new Fatal(`Transform pick: the message has nothing at ${pointer}.`);
      return typeof found === "string"
        ? { ...content, data: Buffer.from(found, "utf8"), contentType: undefined }
        : { ...content, data: Buffer.from(JSON.stringify(found), "utf8"), contentType: "application/json" };
    },
  };
}
