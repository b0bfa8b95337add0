/** Encodings that publishers use to get bytes into queues of text. */
import { promisify } from "node:util";
import { gunzip } from "node:zlib";
import { Fatal } from "../../domain/errors.ts";
import { isError } from "../../domain/realms.ts";
import { guessedType } from "../media-type.ts";
import type { Content, Transform } from "../transform.ts";
import { textOf } from "./json-content.ts";

const unzip = promisify(gunzip);

/** Both alphabets, with or without padding, in lines or in one. */
export const decodeBase64: Transform = {
  name: "base64",
  apply(content) {
    const text = textOf(content.data).replace(/\s+/g, "");
    if (!/^[A-Za-z0-9+/_-]*={0,2}$/.test(text) || text.replace(/=+$/, "").length % 4 === 1)
      throw new Fatal("Transform base64: the message is not base64.");
    return decoded(content, Buffer.from(text, "base64"));
  },
};

/** A type that the message names is that of what was encoded. */
function decoded(content: Content, data: Uint8Array): Content {
  return { ...content, data, contentType: content.contentType ?? guessedType(data) };
}

/** A few bytes can unpack to gigabytes; so no more than `maxBytes` are unpacked. */
export function unpackGzip(maxBytes: number): Transform {
  return {
    name: "gzip",
    async apply(content) {
      try {
        return decoded(content, await unzip(content.data, { maxOutputLength: maxBytes }));
      } catch (cause) {
        const isTooLarge = isError(cause) && "code" in cause && cause.code === "ERR_BUFFER_TOO_LARGE";
        throw new Fatal(
          isTooLarge
            ? `Transform gzip: the message unpacks to more than ${maxBytes} bytes. Raise max_bytes if that is right.`
            : "Transform gzip: the message is not gzip, or is damaged.",
          { cause },
        );
      }
    },
  };
}
