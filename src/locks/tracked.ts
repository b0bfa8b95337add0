/** A promise that is in the set until it is settled. */
export function tracked<T>(set: Set<Promise<unknown>>, promise: Promise<T>): Promise<T> {
  set.add(promise);
  const forget = (): boolean => set.delete(promise);
  void promise.then(forget, forget);
  return promise;
}
