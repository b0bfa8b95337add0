/** Calls that are made at once, one on a line, without what says nothing: a person has to see what they have in common. */
export function readable(calls: readonly object[]): string {
  return calls.map((call, index) => `  ${index === 0 ? "then" : " and"} ${told(call)}`).join("\n");
}

/** Bounds that are not reached. */
const NO_LIMIT = 1_000_000;
/** What speaks for itself. */
const NAMELESS: ReadonlySet<string> = new Set([
  "do",
  "mode",
  "type",
  "action",
  "place",
  "entries",
  "wishes",
  "endings",
]);

function told(value: object): string {
  return Object.entries(value)
    .flatMap(([name, field]: [string, unknown]): readonly string[] => {
      if (field === false || field === undefined || field === "none" || field === NO_LIMIT || field === "fifo")
        return [];
      if (field === true) return [name];
      const said = saidOf(field);
      return [NAMELESS.has(name) ? said : `${name} ${said}`];
    })
    .join(" ");
}

function saidOf(field: unknown): string {
  if (typeof field === "object" && field !== null && !Array.isArray(field)) return `(${told(field)})`;
  if (!Array.isArray(field)) return String(field);
  const said = field.map((one: unknown) => (typeof one === "object" && one !== null ? `(${told(one)})` : String(one)));
  return said.join(" ") || "nothing";
}
