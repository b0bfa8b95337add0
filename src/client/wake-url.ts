import { InvalidInput } from "../domain/errors.ts";

/** A store's URL without what it says about wakes, and that. */
export interface StoreAddress {
  readonly url: string;
  readonly wake?: string;
  readonly wakePrefix?: string;
}

const OURS = /^(wake|wakePrefix)=(.*)$/s;

/**
 * Takes `wake` and `wakePrefix` off: every engine is woken in the same way, and knows nothing of it. A wake's URL may stand there as it is; only
 * `&`, `%`, `#` and `+` in it have to be written as in every parameter.
 */
export function takeWake(url: string): StoreAddress {
  const [location = "", ...rest] = url.split("?");
  const parameters = rest.join("?").split("&");
  const found: { wake?: string; wakePrefix?: string } = {};
  const others = parameters.filter((parameter) => {
    const [, name, value = ""] = OURS.exec(parameter) ?? [];
    if (name === "wake" || name === "wakePrefix") found[name] = decoded(name, value);
    return name === undefined;
  });
  return { url: rest.length === 0 || others.length === 0 ? location : `${location}?${others.join("&")}`, ...found };
}

function decoded(name: string, value: string): string {
  try {
    return decodeURIComponent(value);
  } catch {
    const shown = value.replace(/\/\/[^/?]*@/, "//…@");
    throw new InvalidInput(name, shown, "% written as %25, and as %2525 in the password of a wake's URL");
  }
}
