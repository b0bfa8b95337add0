import type { Clock } from "../domain/clock.ts";

/** What it resolves with; undefined when it takes longer, or rejects, and the reason is told. What becomes of it then is nobody's concern. */
export async function within<T>(
  clock: Clock,
  ms: number,
  work: Promise<T>,
  trouble: (error: unknown) => void,
): Promise<{ readonly value: T } | undefined> {
  const { promise: late, resolve } = Promise.withResolvers<undefined>();
  const timer = clock.setTimer(ms, () => {
    trouble(new Error(`No answer within ${ms} ms.`));
    resolve(undefined);
  });
  const answer = work.then(
    (value) => ({ value }),
    (error: unknown) => {
      trouble(error);
      return undefined;
    },
  );
  try {
    return await Promise.race([answer, late]);
  } finally {
    timer.cancel();
  }
}
