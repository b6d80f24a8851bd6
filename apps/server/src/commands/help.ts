import type { Command } from './command.ts'

/** Returns the text of `--help` of a command. */
export function commandHelp({ usage, summary, options, example }: Command): string {
  const names = Object.entries(options).map(([name, { value }]) => [
    `  --${name}${value === undefined ? '' : ` ${value}`}`,
    options[name]?.help ?? '',
  ])
  const width = Math.max(0, ...names.map(([name = '']) => name.length))
  return [
    `Usage: ${usage}`,
    '',
    summary,
    ...(names.length === 0 ? [] : ['', 'Options']),
    ...names.map(([name = '', help = '']) => `${name.padEnd(width)}  ${help}`),
    '',
    'Example',
    `  signalbox ${example}`,
    '',
  ].join('\n')
}

/** Returns the lines about the commands in the text of `signalbox --help`. */
export function commandLines(commands: readonly Command[]): readonly string[] {
  const width = Math.max(...commands.map(({ name }) => name.length))
  return commands.map(({ name, summary }) => `  ${name.padEnd(width)}  ${summary}`)
}
