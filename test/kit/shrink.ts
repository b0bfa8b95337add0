/**
 * Makes a script that fails short enough to read. Parts of the list are left out, halves first and then ever smaller ones,
 * as long as the rest still fails: in the end no single part can be left out.
 *
 * @param atOnce so many shorter ones are tried side by side, where to try one is mostly waiting
 */
export async function shrink<T>(
  script: readonly T[],
  fails: (script: readonly T[]) => Promise<boolean>,
  atOnce = 1,
): Promise<readonly T[]> {
  let smallest = script;
  for (let size = Math.ceil(script.length / 2); size >= 1; size = size === 1 ? 0 : Math.ceil(size / 2)) {
    for (let from = 0; from < smallest.length;) {
      const places = Array.from({ length: atOnce }, (_, index) => from + index * size);
      const shorter = places.filter((place) => place < smallest.length).map((place) => smallest.toSpliced(place, size));
      const verdicts = await Promise.all(shorter.map(fails));
      const first = verdicts.indexOf(true);
      smallest = shorter[first] ?? smallest;
      // Those before the one that fails cannot be left out; those behind it are tried once more without it.
      from += (first === -1 ? shorter.length : first) * size;
    }
  }
  return smallest;
}

/** The same for a list of lists, such as calls that are made at once: whole lists first, then what is in them. */
export async function shrinkLists<T>(
  script: readonly (readonly T[])[],
  fails: (script: readonly (readonly T[])[]) => Promise<boolean>,
  atOnce = 1,
): Promise<readonly (readonly T[])[]> {
  let smallest = await shrink(script, fails, atOnce);
  for (const index of smallest.keys()) {
    const list = await shrink(smallest[index] ?? [], (rest) => fails(smallest.with(index, rest)), atOnce);
    smallest = smallest.with(index, list);
  }
  return smallest;
}

/** Lists within a call, such as what is submitted with it. One of each stays. */
export async function shrinkEntries<T extends object>(
  script: readonly (readonly T[])[],
  fails: (script: readonly (readonly T[])[]) => Promise<boolean>,
  atOnce = 1,
): Promise<readonly (readonly T[])[]> {
  let smallest = script;
  for (const [place, calls] of script.entries()) {
    for (const [index, call] of calls.entries()) {
      for (const [name, list] of Object.entries(call) as [string, unknown][]) {
        if (!Array.isArray(list)) continue;
        const using = (rest: readonly unknown[]): readonly (readonly T[])[] =>
          smallest.with(place, (smallest[place] ?? []).with(index, { ...call, [name]: rest }));
        const rest = await shrink<unknown>(list, async (some) => some.length > 0 && (await fails(using(some))), atOnce);
        smallest = using(rest);
      }
    }
  }
  return smallest;
}
