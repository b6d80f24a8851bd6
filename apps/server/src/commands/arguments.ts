import { parseArgs } from 'node:util'

import { ServerError } from '../errors.ts'

/** The `--name value` options and the other words of a command line. */
export interface CommandLine {
  /** Returns the value of one of the command's options, or its default. */
  readonly option: (name: string) => string
  readonly positionals: readonly string[]
}

/**
 * Reads the line of a command. `options` are the options with their defaults; an option without a
 * default is required.
 * @throws ServerError CONFIG_INVALID, listing every problem
 */
export function readCommandLine(
  command: string,
  args: readonly string[],
  options: Readonly<Record<string, string | undefined>>,
): CommandLine {
  const names = Object.keys(options)
  const { tokens } = parseArgs({
    args: [...args],
    strict: false,
    tokens: true,
    options: Object.fromEntries(names.map((name) => [name, { type: 'string' as const }])),
  })
  const problems: string[] = []
  const positionals: string[] = []
  const given = new Map<string, string>()
  for (const token of tokens) {
    if (token.kind === 'positional') positionals.push(token.value)
    if (token.kind !== 'option') continue
    const { name, rawName, value } = token
    if (!names.includes(name)) {
      problems.push(`${rawName}: unknown; allowed are ${names.map((known) => `--${known}`).join(', ')}`)
    } else if (value === undefined || value === '') {
      problems.push(`${rawName}: a value is missing; write ${rawName}=VALUE`)
    } else if (given.has(name)) {
      problems.push(`${rawName}: given more than once; allowed: once`)
    } else {
      given.set(name, value)
    }
  }
  const option = (name: string): string => given.get(name) ?? options[name] ?? ''
  problems.push(
    ...names
      .filter((name) => option(name) === '' && options[name] === undefined)
      .map((name) => `--${name}: it is missing; write --${name}=VALUE`),
  )
  if (problems.length > 0) {
    throw new ServerError(
      'CONFIG_INVALID',
      problems.map((problem) => `${command}: ${problem}`),
    )
  }
  return { option, positionals }
}
