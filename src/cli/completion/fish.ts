import { type CommandShape, type OptionShape, type ProgramShape, QUEUE_NAMES } from "./shape.ts";

export function fishCompletion({ commands, options }: ProgramShape): string {
  const names = commands.map((command) => command.name).join(" ");
  const lines = [
    "# fish completion for baton; made by: baton completion fish",
    "function __baton_queues",
    `    ${QUEUE_NAMES}`,
    "end",
    "complete -c baton -f",
    ...options.map((option) => `complete -c baton ${optionPart(option)}`),
    ...commands.flatMap((command) => [
      `complete -c baton -n "not __fish_seen_subcommand_from ${names}" -a ${command.name} -d ${quote(command.description)}`,
      ...commandLines(command),
    ]),
  ];
  return `${lines.join("\n")}\n`;
}

function commandLines({ name, options, operands }: CommandShape): string[] {
  const seen = `-n "__fish_seen_subcommand_from ${name}"`;
  const operandLines = operands.flatMap((operand) => {
    if (operand.name === "queue") return [`complete -c baton ${seen} -a "(__baton_queues)" -d queue`];
    return operand.values.length === 0 ? [] : [`complete -c baton ${seen} -a ${quote(operand.values.join(" "))}`];
  });
  return [...operandLines, ...options.map((option) => `complete -c baton ${seen} ${optionPart(option)}`)];
}

function optionPart({ flag, description, takesValue, values }: OptionShape): string {
  const value = takesValue ? ` -r${values.length === 0 ? " -F" : ` -a ${quote(values.join(" "))}`}` : "";
  return `-l ${flag.slice(2)}${value} -d ${quote(description)}`;
}

function quote(text: string): string {
  return `'${text.replaceAll("\\", "\\\\").replaceAll("'", "\\'")}'`;
}
