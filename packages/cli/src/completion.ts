// cspell:ignore compgen compdef esac CWORD COMPREPLY
import { COMMANDS } from './catalog/commands.ts'
import type { Command, CommandCall } from './command.ts'

const SHELLS: Readonly<Record<string, () => string>> = { bash: bashScript, zsh: zshScript, fish: fishScript }

/** `signalbox completion`: prints the completions of a shell. */
export async function completionCommand({ line, io }: CommandCall): Promise<void> {
  const shell = line.word(0)
  const script = Object.hasOwn(SHELLS, shell) ? SHELLS[shell] : undefined
  if (script === undefined) throw line.invalid('the shell', shell, 'bash, zsh, fish')
  await io.stdout.write(script())
}

/** The first words, each with the second words that may follow. */
function firstWords(): ReadonlyMap<string, readonly Command[]> {
  return Map.groupBy(COMMANDS, ({ name }) => name.split(' ')[0] ?? '')
}

function optionsOf({ options }: Command): readonly string[] {
  return [...Object.keys(options), 'help'].map((name) => `--${name}`)
}

/** The words of a command that are not free text. */
const CHOICES: Readonly<Record<string, string>> = {
  completion: Object.keys(SHELLS).join(' '),
  stats: 'queues channels stores clients agents',
}

function bashScript(): string {
  const first = firstWords()
  const groups = [...first].filter(([name, commands]) => commands.some((command) => command.name !== name))
  return [
    '# bash completion for signalbox',
    '_signalbox() {',
    '  local word=${COMP_WORDS[COMP_CWORD]} command=${COMP_WORDS[1]} words=',
    '  if [ "$COMP_CWORD" -eq 1 ]; then',
    `    COMPREPLY=($(compgen -W '${[...first.keys(), '--help', '--version', '--config', '--print-config'].join(' ')}' -- "$word"))`,
    '    return',
    '  fi',
    '  case $command in',
    ...groups.flatMap(([name, commands]) => [
      `    ${name})`,
      '      if [ "$COMP_CWORD" -eq 2 ]; then',
      `        COMPREPLY=($(compgen -W '${commands.map((command) => command.name.slice(name.length + 1)).join(' ')}' -- "$word"))`,
      '        return',
      '      fi',
      '      command="$command ${COMP_WORDS[2]}" ;;',
    ]),
    '  esac',
    '  case $command in',
    ...COMMANDS.map(
      (command) =>
        `    '${command.name}') words='${[CHOICES[command.name] ?? '', ...optionsOf(command)].join(' ').trim()}' ;;`,
    ),
    '  esac',
    '  COMPREPLY=($(compgen -W "$words" -- "$word"))',
    '  [ ${#COMPREPLY[@]} -gt 0 ] || COMPREPLY=($(compgen -f -- "$word"))',
    '}',
    'complete -F _signalbox signalbox',
    '',
  ].join('\n')
}

function quoted(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`
}

function zshScript(): string {
  const first = firstWords()
  const lines = [
    '#compdef signalbox',
    '_signalbox() {',
    '  local -a items',
    '  if (( CURRENT == 2 )); then',
    ...zshItems([...first].map(([name, [command]]) => [name, command?.summary ?? ''])),
    "    _describe 'command' items",
    '    return',
    '  fi',
    '  local command=$words[2]',
    '  case $command in',
  ]
  for (const [name, commands] of first) {
    if (commands.every((command) => command.name === name)) continue
    lines.push(`    ${name})`, '      if (( CURRENT == 3 )); then')
    lines.push(...zshItems(commands.map((command) => [command.name.slice(name.length + 1), command.summary])))
    lines.push("        _describe 'command' items", '        return', '      fi')
    lines.push('      command="$command $words[3]" ;;')
  }
  lines.push('  esac', '  case $command in')
  for (const command of COMMANDS) {
    const choices = CHOICES[command.name]?.split(' ') ?? []
    lines.push(`    '${command.name}')`)
    lines.push(
      ...zshItems([
        ...choices.map((choice) => [choice, ''] as const),
        ...Object.entries(command.options).map(([name, { help }]) => [`--${name}`, help] as const),
        ['--help', 'Print the usage.'],
      ]),
    )
    lines.push('      ;;')
  }
  lines.push('  esac', "  _describe 'option' items || _files", '}', 'compdef _signalbox signalbox', '')
  return lines.join('\n')
}

/** Returns the lines that set the items which zsh describes. */
function zshItems(items: readonly (readonly [name: string, help: string])[]): readonly string[] {
  const texts = items.map(([name, help]) => quoted(help === '' ? name : `${name}:${help.replaceAll(':', '\\:')}`))
  return ['      items=(', ...texts.map((text) => `        ${text}`), '      )']
}

function fishScript(): string {
  const lines = ['# fish completion for signalbox', 'complete -c signalbox -f']
  for (const [name, commands] of firstWords()) {
    const [command] = commands
    lines.push(`complete -c signalbox -n __fish_use_subcommand -a ${name} -d ${fishQuoted(command?.summary ?? '')}`)
    for (const each of commands) {
      const second = each.name.slice(name.length + 1)
      const seen = second === '' ? '' : `; and __fish_seen_subcommand_from ${second}`
      if (second !== '') {
        const others = commands.map((other) => other.name.slice(name.length + 1)).join(' ')
        lines.push(
          `complete -c signalbox -n '__fish_seen_subcommand_from ${name}; and not __fish_seen_subcommand_from ${others}' -a ${second} -d ${fishQuoted(each.summary)}`,
        )
      }
      const condition = `'__fish_seen_subcommand_from ${name}${seen}'`
      const choices = CHOICES[each.name]
      if (choices !== undefined) lines.push(`complete -c signalbox -n ${condition} -a ${fishQuoted(choices)}`)
      for (const [option, { value, help }] of Object.entries(each.options)) {
        lines.push(
          `complete -c signalbox -n ${condition} -l ${option}${value === undefined ? '' : ' -r'} -d ${fishQuoted(help)}`,
        )
      }
    }
  }
  return `${lines.join('\n')}\n`
}

function fishQuoted(text: string): string {
  return `'${text.replaceAll('\\', '\\\\').replaceAll("'", "\\'")}'`
}
