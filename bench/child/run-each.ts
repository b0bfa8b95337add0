/** For subjects that hand out batches: runs the items of one, at most so many at a time. */
export async function runEach<T>(
  batch: readonly T[],
  concurrency: number,
  run: (one: T) => void | Promise<void>,
): Promise<void> {
  const rest = batch.values();
  const lane = async (): Promise<void> => {
    for (const one of rest) await run(one);
  };
  await Promise.all(Array.from({ length: Math.min(concurrency, batch.length) }, lane));
}
