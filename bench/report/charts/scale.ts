/** From values to places on the paper. */

export type Scale = (value: number) => number;

export function linear(domain: readonly [number, number], range: readonly [number, number]): Scale {
  const [low, high] = domain;
  const [from, to] = range;
  const width = high === low ? 1 : high - low;
  return (value) => from + ((Math.min(Math.max(value, low), high) - low) / width) * (to - from);
}

/** Equal steps are equal factors. What is outside is drawn at the edge. */
export function logarithmic(domain: readonly [number, number], range: readonly [number, number]): Scale {
  const [low, high] = domain;
  const scale = linear([Math.log10(low), Math.log10(high)], range);
  return (value) => scale(Math.log10(Math.max(value, low)));
}

/** 0.1, 1, 10 … that lie within. */
export function powersOfTen([low, high]: readonly [number, number]): readonly number[] {
  const first = Math.ceil(Math.log10(low) - 1e-9);
  const last = Math.floor(Math.log10(high) + 1e-9);
  return Array.from({ length: Math.max(0, last - first + 1) }, (_, index) => 10 ** (first + index));
}

/** 1, 2, 5, 10, 20 … that lie within; only the powers of ten where there would be too many. */
export function steps(domain: readonly [number, number]): readonly number[] {
  const [low, high] = domain;
  if (high / low > 500) return powersOfTen(domain);
  return powersOfTen([low / 10, high])
    .flatMap((power) => [power, 2 * power, 5 * power])
    .filter((value) => value >= low && value <= high);
}

/** Such as 1.5k and 2M: short enough for an axis. */
export function short(value: number): string {
  if (value >= 1e6) return `${Number((value / 1e6).toPrecision(2))}M`;
  if (value >= 1e3) return `${Number((value / 1e3).toPrecision(2))}k`;
  return String(Number(value.toPrecision(2)));
}
