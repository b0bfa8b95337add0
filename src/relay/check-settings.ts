/** Settings that a program wrote by hand: a slip in a name must not look like a choice. */
import { InvalidInput } from "../domain/errors.ts";
import { checkList, checkOptions, type OptionNames } from "../domain/options.ts";
import type * as settings from "./settings.ts";

const RELAY: OptionNames<settings.RelaySettings> = {
  routes: true,
  keys: true,
  admin: true,
  graceMs: true,
  warnings: true,
};
const KEYS: OptionNames<settings.KeySettings> = {
  store: true,
  queue: true,
  leaseMs: true,
  waiting: true,
  waitMs: true,
  awayMs: true,
};
const ADMIN: OptionNames<settings.AdminSettings> = { host: true, port: true, token: true };
const ROUTE: OptionNames<settings.RouteSettings> = {
  name: true,
  sources: true,
  choice: true,
  concurrency: true,
  transforms: true,
  key: true,
  form: true,
  processor: true,
};
const SOURCE: OptionNames<settings.SourceSettings> = {
  name: true,
  weight: true,
  retry: true,
  deadLetter: true,
  open: true,
  packages: true,
  look: true,
};
const RETRY: OptionNames<settings.RelayRetry> = {
  attempts: true,
  backoffMs: true,
  maxBackoffMs: true,
  maxAgeMs: true,
  delayMs: true,
};
const FATAL: OptionNames<settings.FatalSettings> = { codes: true, action: true };
const BREAKER: OptionNames<settings.BreakerSettings> = { failures: true, openMs: true };
const FUNCTION: OptionNames<settings.FunctionSettings> = { type: true, run: true, timeoutMs: true };
const COMMAND: OptionNames<settings.CommandSettings> = {
  type: true,
  command: true,
  arguments: true,
  fatal: true,
  timeoutMs: true,
};
const HTTP: OptionNames<settings.HttpSettings> = {
  type: true,
  target: true,
  method: true,
  headers: true,
  contentType: true,
  timeoutMs: true,
  connectTimeoutMs: true,
  perHost: true,
  fatal: true,
  replies: true,
  breaker: true,
  signingSecrets: true,
};

export function checkSettings(relay: settings.RelaySettings): settings.RelaySettings {
  const { routes, keys, admin } = checkOptions(relay, RELAY);
  if (keys !== undefined) checkOptions(keys, KEYS, "keys");
  if (admin !== undefined) checkOptions(admin, ADMIN, "admin");
  for (const [index, route] of checkList(routes, "routes", "routes").entries()) checkRoute(route, `routes[${index}]`);
  return relay;
}

function checkRoute(route: settings.RouteSettings, place: string): void {
  const { sources, processor } = checkOptions(route, ROUTE, place);
  for (const [index, source] of checkList(sources, `${place}.sources`, "sources").entries()) {
    const at = `${place}.sources[${index}]`;
    checkOptions(source, SOURCE, at);
    checkOptions(source.retry, RETRY, `${at}.retry`);
  }
  checkProcessor(processor, `${place}.processor`);
}

function checkProcessor(processor: settings.ProcessorSettings, place: string): void {
  switch (processor.type) {
    case "function":
      checkOptions(processor, FUNCTION, place);
      return;
    case "command":
      checkOptions(processor, COMMAND, place);
      checkOptions(processor.fatal, FATAL, `${place}.fatal`);
      return;
    case "http":
      checkOptions(processor, HTTP, place);
      checkOptions(processor.fatal, FATAL, `${place}.fatal`);
      if (processor.breaker !== undefined) checkOptions(processor.breaker, BREAKER, `${place}.breaker`);
      return;
    default:
      throw new InvalidInput(`${place}.type`, Reflect.get(processor, "type"), "function, http or command");
  }
}
