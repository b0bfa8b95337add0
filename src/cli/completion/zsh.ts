import { type CommandShape, type OperandShape, type OptionShape, type ProgramShape, QUEUE_NAMES } from "./shape.ts";

export function zshCompletion({ commands, options }: ProgramShape): string {
  return `#compdef baton
# zsh completion for baton; made by: baton completion zsh
_baton_queues() {
  local -a queues
  queues=(\${(f)"$(${QUEUE_NAMES})"})
  compadd -a queues
}

_baton() {
  local state line
  typeset -A opt_args
  local -a commands global
  commands=(
${commands.map((command) => `    ${quote(`${command.name}:${command.description}`)}`).join("\n")}
  )
  global=(
${options.map((option) => `    ${optionSpec(option)}`).join("\n")}
  )
  _arguments -C $global '1: :->command' '*:: :->rest'
  case $state in
    command) _describe command commands ;;
    rest)
      case $line[1] in
${commands.map(commandCase).join("\n")}
      esac ;;
  esac
}
if [ "$funcstack[1]" = _baton ]; then _baton "$@"; else compdef _baton baton; fi
`;
}

function commandCase({ name, options, operands }: CommandShape): string {
  const specs = [...options.map(optionSpec), ...operands.map(operandSpec)];
  return `        ${name}) _arguments $global ${specs.join(" ")} ;;`;
}

function optionSpec({ flag, description, takesValue, values }: OptionShape): string {
  const value = takesValue ? `:value:${values.length === 0 ? "_files" : `(${values.join(" ")})`}` : "";
  return quote(`${flag}[${description.replace(/[[\]:\\]/g, "\\$&")}]${value}`);
}

function operandSpec({ name, values }: OperandShape, index: number): string {
  if (name === "queue") return quote(`${index + 1}:queue:_baton_queues`);
  if (name === "command") return quote("*::command:_normal");
  return quote(`${index + 1}:${name}:${values.length === 0 ? " " : `(${values.join(" ")})`}`);
}

function quote(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`;
}
