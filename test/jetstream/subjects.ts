/** Subjects and patterns of them: `*` is one word, `>` is all the rest and at least one word. */

export function matches(pattern: string, subject: string): boolean {
  return pattern === subject || (isPattern(pattern) && covers(pattern.split("."), subject.split(".")));
}

export function isPattern(subject: string): boolean {
  return subject.split(".").some((word) => word === "*" || word === ">");
}

/** Whether all that the second one matches is matched by the first one. */
export function includes(pattern: string, other: string): boolean {
  const [words, others] = [pattern.split("."), other.split(".")];
  for (const [place, word] of words.entries()) {
    if (word === ">") return others.length > place;
    const otherWord = others[place];
    if (otherWord === undefined || otherWord === ">" || (word !== "*" && word !== otherWord)) return false;
  }
  return words.length === others.length;
}

/** Whether there can be a subject that both match. */
export function overlap(one: string, other: string): boolean {
  const [words, others] = [one.split("."), other.split(".")];
  for (let place = 0; ; place += 1) {
    const [word, otherWord] = [words[place], others[place]];
    if (word === undefined || otherWord === undefined) return word === otherWord;
    if (word === ">" || otherWord === ">") return true;
    if (word !== otherWord && word !== "*" && otherWord !== "*") return false;
  }
}

function covers(pattern: readonly string[], subject: readonly string[]): boolean {
  for (const [place, word] of pattern.entries()) {
    if (word === ">") return subject.length > place;
    if (place >= subject.length || (word !== "*" && word !== subject[place])) return false;
  }
  return pattern.length === subject.length;
}
