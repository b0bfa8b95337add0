/** What was thrown, as something that can be thrown again. */
import { isError } from "../../domain/realms.ts";
export function asError(thrown: unknown): Error {
  return isError(thrown) ? thrown : new Error(String(thrown));
}
