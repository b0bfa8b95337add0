/**
 * What is done to a message before it is delivered. A transform may need a module or a library, so it is opened after
 * the file was read.
 */
import { InvalidInput } from "../../domain/errors.ts";
import type { Transform } from "../transform.ts";
import { decodeBase64, unpackGzip } from "../transforms/decode.ts";
import { openModule } from "../transforms/module.ts";
import { pick } from "../transforms/pick.ts";
import { unwrapDaprAws, unwrapSns } from "../transforms/sns.ts";
import { object, variants, withDefault } from "./fields.ts";
import {
  convert,
  either,
  integer,
  isText,
  oneOf,
  type Place,
  refused,
  type Refused,
  type Schema,
  text,
} from "./schema.ts";
import { jsonPointer } from "./values.ts";

/** Opens it; a module that cannot be loaded is a problem of the file. */
export type OpenTransform = () => Promise<Transform | Refused>;

/** Larger than what any of the queues takes in one message. */
const DEFAULT_UNPACKED_BYTES = 10_485_760;

/** Those that need nothing but their name. */
export const namedTransform: Schema<OpenTransform> = convert(
  oneOf("sns", "dapr_aws", "cloudevents", "base64", "gzip"),
  (name) => async () => {
    switch (name) {
      case "sns":
        return unwrapSns;
      case "dapr_aws":
        return unwrapDaprAws;
      case "base64":
        return decodeBase64;
      case "gzip":
        return unpackGzip(DEFAULT_UNPACKED_BYTES);
      case "cloudevents":
        return (await import("../transforms/cloudevents.ts")).openCloudEvents();
    }
  },
);

const plain = convert(object("a transform", { type: namedTransform }), ({ type }) => type);

export const transform: Schema<OpenTransform> = either(
  isText,
  namedTransform,
  variants("type", {
    sns: plain,
    dapr_aws: plain,
    cloudevents: plain,
    base64: plain,
    gzip: convert(
      object("a gzip transform", {
        type: oneOf("gzip"),
        max_bytes: withDefault(integer(1), DEFAULT_UNPACKED_BYTES),
      }),
      ({ max_bytes: maxBytes }): OpenTransform =>
        () =>
          Promise.resolve(unpackGzip(maxBytes)),
    ),
    pick: convert(
      object("a pick transform", { type: oneOf("pick"), pointer: jsonPointer }),
      ({ pointer }): OpenTransform =>
        () =>
          Promise.resolve(pick(pointer)),
    ),
    module: convert(
      object("a module transform", { type: oneOf("module"), path: text("the path of a module") }),
      ({ path }, at): OpenTransform => {
        const open: OpenTransform = () => loadModule(path, at.field("path"));
        at.around.later.push(open);
        return open;
      },
    ),
  }),
);

async function loadModule(path: string, at: Place): Promise<Transform | Refused> {
  try {
    return await openModule(path, at.around.folder);
  } catch (error) {
    if (!(error instanceof InvalidInput)) throw error;
    at.refuse(error.rule, path);
    return refused;
  }
}
