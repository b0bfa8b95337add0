/**
 * Whatever a user, a store or a command gave us goes through here on its way to a terminal. A key may hold an
 * escape sequence that clears the screen, and a bidirectional mark makes a line read other than it is.
 */
const OBEYED_BY_TERMINALS = /[\p{Cc}\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff]/gu;

/** About what fits beside the other columns of a wide terminal. */
const LONGEST_SUMMARY = 160;

const SHORT: Readonly<Record<string, string>> = { "\n": "\\n", "\r": "\\r", "\t": "\\t" };

/** On one line. */
export function printable(text: string): string {
  return text.toWellFormed().replace(OBEYED_BY_TERMINALS, escaped);
}

/** The beginning of a message of several lines, on one line: for tables and logs. */
export function summary(text: string): string {
  const words = printable(text.replace(/\s+/g, " ").trim());
  return words.length <= LONGEST_SUMMARY ? words : `${words.slice(0, LONGEST_SUMMARY)}…`;
}

/** Line breaks stay: for messages of several lines. */
export function printableLines(text: string): string {
  const lines = text.toWellFormed().replaceAll("\r\n", "\n");
  return lines.replace(OBEYED_BY_TERMINALS, (character) => (character === "\n" ? character : escaped(character)));
}

/** JSON on one line that a terminal does not obey either: JSON itself leaves DEL and C1 controls as they are. */
export function printableJson(value: unknown): string {
  return JSON.stringify(value).replace(OBEYED_BY_TERMINALS, unicodeEscape);
}

function escaped(character: string): string {
  return SHORT[character] ?? unicodeEscape(character);
}

function unicodeEscape(character: string): string {
  return `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`;
}
