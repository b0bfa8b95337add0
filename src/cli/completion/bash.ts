import { type CommandShape, type OptionShape, type ProgramShape, QUEUE_NAMES } from "./shape.ts";

/** Walks the words before the cursor to learn which command, and which of its operands, is being written. */
export function bashCompletion({ commands, options }: ProgramShape): string {
  const every = [...options, ...commands.flatMap((command) => command.options)];
  const withValue = [...new Set(every.filter((option) => option.takesValue).map((option) => option.flag))];
  return `# bash completion for baton; made by: baton completion bash
_baton_queues() {
  ${QUEUE_NAMES}
}

_baton() {
  local current=\${COMP_WORDS[COMP_CWORD]} previous=\${COMP_WORDS[COMP_CWORD-1]}
  local command= operand=0 words= i
  COMPREPLY=()
  for ((i = 1; i < COMP_CWORD; i++)); do
    case \${COMP_WORDS[i]} in
      --)
        # What follows is a command of its own.
        if declare -F _command_offset >/dev/null; then _command_offset $((i + 1)); else COMPREPLY=($(compgen -c -- "$current")); fi
        return ;;
      ${withValue.join("|")}) ((i++)) ;;
      -*) ;;
      *) if [[ -z $command ]]; then command=\${COMP_WORDS[i]}; else ((operand++)); fi ;;
    esac
  done
  case "$command $previous" in
${optionValueCases(commands, options)}
  esac
  if [[ $current == -* ]]; then
    case $command in
${commands.map((command) => `      ${command.name}) words="${flags([...command.options, ...options])}" ;;`).join("\n")}
      *) words="${flags(options)}" ;;
    esac
  elif [[ -z $command ]]; then
    words="${commands.map((command) => command.name).join(" ")}"
  else
    case "$command $operand" in
${commands.flatMap(operandCases).join("\n")}
    esac
  fi
  COMPREPLY=($(compgen -W "$words" -- "$current"))
}
complete -F _baton baton
`;
}

function optionValueCases(commands: readonly CommandShape[], globals: readonly OptionShape[]): string {
  const cases = commands.flatMap((command) =>
    command.options.map((option) => valueCase(`"${command.name} ${option.flag}"`, option)),
  );
  return [...cases, ...globals.map((option) => valueCase(`*" ${option.flag}"`, option))]
    .filter((line) => line !== "")
    .join("\n");
}

function valueCase(pattern: string, { takesValue, values }: OptionShape): string {
  if (!takesValue) return "";
  // A value that we know nothing about: a file name is the best guess a shell has, and it makes that by itself.
  return values.length === 0
    ? `    ${pattern}) compopt -o default 2>/dev/null; return ;;`
    : `    ${pattern}) COMPREPLY=($(compgen -W "${values.join(" ")}" -- "$current")); return ;;`;
}

function operandCases({ name, operands }: CommandShape): string[] {
  return operands.flatMap((operand, index) => {
    if (operand.name === "queue") return [`      "${name} ${index}") words=$(_baton_queues) ;;`];
    return operand.values.length === 0 ? [] : [`      "${name} ${index}") words="${operand.values.join(" ")}" ;;`];
  });
}

function flags(options: readonly OptionShape[]): string {
  return [...new Set(options.map((option) => option.flag))].join(" ");
}
