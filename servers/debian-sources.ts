/** The machine's apt sources for the Debian archive, turned to another suite of it. */
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

const APT = "/etc/apt";
/** Neither the security archive nor that of somebody else. A list of mirrors has the name of what they mirror. */
const ARCHIVE = /\/debian(\.list)?\/?$/;

export interface SourceFile {
  readonly name: string;
  readonly text: string;
}

interface Source {
  readonly uris: readonly string[];
  readonly signedBy: string | undefined;
}

/** In the format of a `.sources` file. */
export function sourcesOf(suite: string, files: readonly SourceFile[] = sourceFiles()): string {
  const sources = files.flatMap(({ name, text }) => (name.endsWith(".sources") ? paragraphs(text) : lines(text)));
  const turned = sources
    .map(({ uris, signedBy }) => ({ uris: uris.filter((uri) => ARCHIVE.test(uri)), signedBy }))
    .filter(({ uris }) => uris.length > 0)
    .map(({ uris, signedBy }) => paragraph(suite, uris, signedBy));
  if (turned.length === 0) throw new Error("The machine has no apt source for the Debian archive.");
  return [...new Set(turned)].join("\n");
}

function paragraph(suite: string, uris: readonly string[], signedBy: string | undefined): string {
  const fields = [
    "Types: deb",
    `URIs: ${uris.join(" ")}`,
    `Suites: ${suite}`,
    "Components: main",
    // No icons, no lists of contents, whatever the machine fetches besides.
    "Targets: Packages",
  ];
  if (signedBy !== undefined) fields.push(`Signed-By: ${signedBy}`);
  return `${fields.join("\n")}\n`;
}

function paragraphs(text: string): Source[] {
  const withoutComments = text.replaceAll(/^#.*\n?/gm, "");
  return withoutComments.split(/\n\s*\n/).flatMap((one) => {
    // A field goes on in lines that begin with a space: a key may be written out.
    const fields = new Map(
      Array.from(one.matchAll(/^([\w-]+):[ \t]*(.*(?:\n[ \t].*)*)/gm), ([, name = "", value = ""]) => [
        name.toLowerCase(),
        value,
      ]),
    );
    if (!words(fields.get("types")).includes("deb") || fields.get("enabled")?.trim() === "no") return [];
    return [{ uris: words(fields.get("uris")), signedBy: fields.get("signed-by")?.trimEnd() }];
  });
}

function lines(text: string): Source[] {
  return Array.from(text.matchAll(/^\s*deb\s+(?:\[([^\]]*)\]\s*)?(\S+)\s/gm), ([, options = "", uri = ""]) => ({
    uris: [uri],
    signedBy: /(?:^|\s)signed-by=(\S+)/i.exec(options)?.[1]?.replaceAll(",", " "),
  }));
}

function words(value: string | undefined): string[] {
  return value?.split(/\s+/).filter((word) => word !== "") ?? [];
}

function sourceFiles(): SourceFile[] {
  const parts = join(APT, "sources.list.d");
  const names = [
    join(APT, "sources.list"),
    ...(existsSync(parts) ? readdirSync(parts).map((name) => join(parts, name)) : []),
  ];
  return names
    .filter((name) => /\.(list|sources)$/.test(name) && existsSync(name))
    .map((name) => ({ name, text: readFileSync(name, "utf8") }));
}
