import { existsSync, mkdirSync } from "node:fs";
import { homedir } from "node:os";
import { dirname, join } from "node:path";
import { type Baton, BatonError, connect, InvalidInput, type BatonEvent } from "../index.ts";
import { sqliteFile } from "../relay/check/sqlite-file.ts";
import { printEvent } from "./output.ts";
import type { GlobalFlags } from "./flags.ts";

/** The URL given, or the file in the user's data folder. */
export function storeUrl(flags: GlobalFlags): string {
  // In a URL, a question mark would begin the parameters.
  return flags.store ?? `sqlite:${encodeURI(defaultFile()).replaceAll("?", "%3F")}`;
}

/** Opens the store, and makes it if need be. */
export function openStore(flags: GlobalFlags, onEvent: (event: BatonEvent) => void = printEvent): Promise<Baton> {
  const url = storeUrl(flags);
  if (/^memory:/i.test(url))
    throw new InvalidInput("store", url, "a store that outlives this command, such as sqlite:work.db");
  // The folder of a file that somebody named is their affair; that of the default is ours.
  if (flags.store === undefined) makeFolder(dirname(defaultFile()));
  return connect(url, { onEvent, waitForStore: flags.waitForStore });
}

/** Opens the store for looking only: a look must not leave a file behind. Undefined: there is none yet. */
export async function openExistingStore(
  flags: GlobalFlags,
  onEvent: (event: BatonEvent) => void = printEvent,
): Promise<Baton | undefined> {
  const file = sqliteFile(storeUrl(flags));
  return file !== undefined && !existsSync(file) ? undefined : openStore(flags, onEvent);
}

export function noStoreYet(flags: GlobalFlags): BatonError {
  return new BatonError(
    "NOT_FOUND",
    `There is no store yet at ${displayUrl(storeUrl(flags))}. The first baton submit or baton work makes it; ` +
      "if you expected one, check --store and $BATON_URL.",
  );
}

/** Passwords and tokens in a URL are not for the screen. */
export function displayUrl(url: string): string {
  return (
    url
      .replace(/^([a-z][a-z0-9+.-]*:\/\/[^/@]*?):[^/]*@/i, "$1:***@")
      .replace(/([?&]token=)[^&]*/gi, "$1***")
      // The URL of a wake may carry a password too, and may be written in many ways.
      .replace(/([?&]wake=[a-z+]+)[^&]*/gi, "$1:***")
  );
}

/** For this user only: payloads are nobody else's business. */
function makeFolder(folder: string): void {
  try {
    mkdirSync(folder, { recursive: true, mode: 0o700 });
  } catch (cause) {
    throw new BatonError(
      "STORE_UNAVAILABLE",
      `The folder for the store cannot be made (${cause instanceof Error ? cause.message : String(cause)}). ` +
        "Nothing was done. Name another place with --store sqlite:FILE or $BATON_URL.",
      { cause },
    );
  }
}

function defaultFile(): string {
  return join(dataFolder(), "baton", "baton.db");
}

function dataFolder(): string {
  const { XDG_DATA_HOME: xdg, LOCALAPPDATA: local } = process.env;
  if (xdg !== undefined && xdg !== "") return xdg;
  if (process.platform === "win32") return local ?? join(homedir(), "AppData", "Local");
  if (process.platform === "darwin") return join(homedir(), "Library", "Application Support");
  return join(homedir(), ".local", "share");
}
