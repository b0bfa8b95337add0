/** `${NAME}` and `${NAME:-default}` in texts; `$${` stands for the two characters themselves. */
export type Environment = Readonly<Record<string, string | undefined>>;

const VARIABLE = /\$\$\{|\$\{([^}]*)\}?/g;

interface Place {
  readonly around: { readonly environment: Environment };
  refuse(expected: string, found: string): unknown;
}

/**
 * Undefined: the place has been told what is missing. As in a shell, the default also stands in for an empty variable.
 */
export function fillIn(written: string, at: Place): string | undefined {
  let isComplete = true;
  const refuse = (expected: string, found: string): string => {
    isComplete = false;
    at.refuse(expected, found);
    return "";
  };
  const filled = written.replace(VARIABLE, (whole, inside: string | undefined) => {
    if (inside === undefined) return "${";
    const [, name, fallback] = /^([A-Za-z_]\w*)(?::-(.*))?$/s.exec(inside) ?? [];
    if (name === undefined || !whole.endsWith("}"))
      return refuse("a variable as in ${NAME} or ${NAME:-default}, or $${ for the characters themselves", whole);
    const value = at.around.environment[name];
    if (value !== undefined && (value !== "" || fallback === undefined)) return value;
    return fallback ?? refuse(`the environment variable ${name} to be set, or a default: \${${name}:-…}`, "nothing");
  });
  return isComplete ? filled : undefined;
}
