/**
 * Which sources are asked next, and for how many messages. Knows sources by their place in the route: the most urgent
 * is 0.
 */
export interface Choice {
  /**
   * How to fill `room` slots from sources that may have something. Sources that are not named are not asked in this
   * round.
   */
  plan(candidates: readonly number[], room: number): readonly Ask[];
  /** A source has given so many messages. */
  took(source: number, messages: number): void;
}

export interface Ask {
  readonly source: number;
  readonly max: number;
}

/**
 * The most urgent source that may have something gets all the room: those after it are asked when it has shown to be
 * empty.
 */
export function strictChoice(): Choice {
  return {
    plan: ([first], room) => (first === undefined ? [] : [{ source: first, max: room }]),
    took: () => undefined,
  };
}

/**
 * Each source has its share of the messages by its weight, and what one does not use goes to the others. Stride
 * scheduling: a source's clock runs on by 1/weight with each message, and the one whose clock is behind is next. Of
 * sources that always have something, one of weight w among weights that sum up to W is passed over by at most W/w
 * messages in a row, and one more per source.
 */
export function weightedChoice(weights: readonly number[]): Choice {
  const clocks = weights.map(() => 0);
  let now = 0;
  const stride = (source: number): number => 1 / (weights[source] ?? 1);
  // Whoever had nothing for a while starts where the others are: time without messages is not saved up.
  const clockOf = (source: number): number => Math.max(clocks[source] ?? 0, now);
  return {
    plan(candidates, room) {
      const planned = new Map<number, number>(candidates.map((source) => [source, clockOf(source)]));
      const asks = new Map<number, number>();
      for (let slot = 0; slot < room; slot += 1) {
        const next = leastOf(planned);
        if (next === undefined) break;
        planned.set(next, (planned.get(next) ?? 0) + stride(next));
        asks.set(next, (asks.get(next) ?? 0) + 1);
      }
      now = Math.max(now, Math.min(...candidates.map(clockOf)));
      return Array.from(asks, ([source, max]) => ({ source, max }));
    },
    took(source, messages) {
      clocks[source] = clockOf(source) + messages * stride(source);
    },
  };
}

/** The source whose clock is furthest behind; of equals, the more urgent. */
function leastOf(clocks: ReadonlyMap<number, number>): number | undefined {
  let least: number | undefined;
  let at = Infinity;
  for (const [source, clock] of clocks) {
    if (clock < at) {
      least = source;
      at = clock;
    }
  }
  return least;
}
