/** Columns two spaces apart, as wide as their widest cell; numbers to the right. Cells must be printable already. */
export function table(head: readonly string[], rows: readonly (readonly (string | number)[])[]): string[] {
  const widths = head.map((title, column) =>
    rows.reduce((widest, row) => Math.max(widest, String(row[column] ?? "").length), title.length),
  );
  const numeric = head.map((_, column) => rows.length > 0 && rows.every((row) => typeof row[column] === "number"));
  const line = (cells: readonly (string | number)[]): string =>
    cells
      .map((cell, column) => {
        const width = widths[column] ?? 0;
        return numeric[column] === true ? String(cell).padStart(width) : String(cell).padEnd(width);
      })
      .join("  ")
      .trimEnd();
  return [line(head), ...rows.map(line)];
}

/** Names and what they have, one per line, the values in one column. */
export function pairs(entries: readonly (readonly [string, string])[]): string[] {
  const width = entries.reduce((widest, [name]) => Math.max(widest, name.length), 0);
  return entries.map(([name, value]) => `${name.padEnd(width)}  ${value}`);
}
