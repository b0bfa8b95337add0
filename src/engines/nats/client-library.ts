import type * as Package from "@nats-io/transport-node";
import { whyNotLoaded } from "../../domain/client-library.ts";

type Library = typeof Package;

let library: Library | undefined;

/** Before anything else of it is used. */
export async function loadNats(): Promise<Library> {
  try {
    library ??= await import("@nats-io/transport-node");
  } catch (cause) {
    throw whyNotLoaded("@nats-io/transport-node", "NATS", cause);
  }
  return library;
}
