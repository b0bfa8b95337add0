/** Names that begin alike are meant alike: `retries` is `retry`. */
const SAME_BEGINNING = 4;

/** Which of the names somebody meant who wrote another one. Undefined: none that can be guessed. */
export function nearestName(written: string, names: readonly string[]): string | undefined {
  const wanted = plain(written);
  let nearest: string | undefined;
  let least = Infinity;
  for (const name of names) {
    const distance = slips(wanted, plain(name));
    if (distance >= least || !isNear(wanted, plain(name), distance)) continue;
    nearest = name;
    least = distance;
  }
  return nearest;
}

/** Case and separators are the commonest slips, and count for none. */
function plain(name: string): string {
  return name.toLowerCase().replace(/[-_. ]/g, "");
}

function isNear(a: string, b: string, distance: number): boolean {
  const longest = Math.max(a.length, b.length);
  return distance === 0 || distance <= Math.floor(longest / 3) || sameBeginning(a, b) >= SAME_BEGINNING;
}

function sameBeginning(a: string, b: string): number {
  let same = 0;
  while (same < a.length && a[same] === b[same]) same += 1;
  return same;
}

/** How many letters were left out, put in, changed, or swapped with their neighbour: the distance of Damerau and Levenshtein. */
function slips(a: string, b: string): number {
  const rows: number[][] = [Array.from({ length: b.length + 1 }, (_, column) => column)];
  for (let row = 1; row <= a.length; row += 1) {
    const [above = [], before = []] = [rows[row - 1], rows[row - 2]];
    const line = [row];
    for (let column = 1; column <= b.length; column += 1) {
      const isSame = a[row - 1] === b[column - 1];
      const changed = at(above, column - 1) + (isSame ? 0 : 1);
      const isSwapped = a[row - 1] === b[column - 2] && a[row - 2] === b[column - 1];
      const swapped = isSwapped ? at(before, column - 2) + 1 : Infinity;
      line.push(Math.min(changed, swapped, at(above, column) + 1, at(line, column - 1) + 1));
    }
    rows.push(line);
  }
  return at(rows[a.length] ?? [], b.length);
}

function at(line: readonly number[], column: number): number {
  return line[column] ?? Infinity;
}
