import { BatonError, OutcomeUnknown } from "../../domain/errors.ts";

/**
 * Pieces of one call. That nothing changed can be said of the whole only if it is true of every piece: when one failed while another went
 * through, or may have, what became of the whole is unknown.
 */
export async function together<T>(pieces: readonly Promise<T>[]): Promise<readonly T[]> {
  if (pieces.length === 1) return await Promise.all(pieces);
  const ends = await Promise.allSettled(pieces);
  const failed = ends.filter((end) => end.status === "rejected");
  const [first] = failed;
  if (first === undefined) return ends.flatMap((end) => (end.status === "fulfilled" ? [end.value] : []));
  const reason: unknown = first.reason;
  const isCertain =
    failed.length === ends.length && failed.every(({ reason: one }) => !(one instanceof OutcomeUnknown));
  if (isCertain && reason instanceof BatonError) throw reason;
  throw new OutcomeUnknown("a part of the call", { cause: reason });
}
