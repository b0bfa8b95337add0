/**
 * What the next blocking query asks for changes after. 0: it is answered at once.
 *
 * An index that did not rise is forgotten. It went backwards when Consul was restored from a snapshot. And a restore answers queries that are
 * under way with what stood there before it, under the old index: a query for what comes after that would sleep over all that is gone.
 */
export function nextIndex(asked: number, { index }: { readonly index: number }): number {
  return index > asked ? index : 0;
}
