import { parseArgs } from 'node:util'

import { mostSimilar } from '@signalbox/broker-core/internal'

import { CommandError } from './errors.ts'

/** The form of a command's line. */
export interface Syntax {
  /** One word, or two: `send`, `log read`. */
  readonly name: string
  /** The line without the options that every command of its kind has. */
  readonly usage: string
  /** The least and the most words after the name. */
  readonly words: readonly [least: number, most: number]
  readonly options: Options
}

export type Options = Readonly<Record<string, OptionDescription>>

/** An option of a command. */
export interface OptionDescription {
  /** The placeholder of the value. @default a switch without a value */
  readonly value?: string
  readonly default?: string
  readonly required?: true
  readonly help: string
}

/** The options and the other words of a command line. */
export class CommandLine {
  readonly command: string
  readonly words: readonly string[]
  readonly #given: ReadonlyMap<string, string>
  readonly #options: Syntax['options']

  constructor(
    { name, options }: Pick<Syntax, 'name' | 'options'>,
    words: readonly string[],
    given: ReadonlyMap<string, string>,
  ) {
    this.command = name
    this.words = words
    this.#given = given
    this.#options = options
  }

  /** Returns a word after the name of the command; an empty text if it was left out. */
  word(position: number): string {
    return this.words[position] ?? ''
  }

  /** Returns the value of an option, or its default; `undefined` if it has neither. */
  value(name: string): string | undefined {
    return this.#given.get(name) ?? this.#options[name]?.default
  }

  /** Returns the value of an option, or its default; an empty text if it has neither. */
  option(name: string): string {
    return this.value(name) ?? ''
  }

  /** Returns `true` if the line has the switch, or the option. */
  has(name: string): boolean {
    return this.#given.has(name)
  }

  /** Returns the values of a list that commas separate. */
  list(name: string): readonly string[] {
    return this.option(name)
      .split(',')
      .map((item) => item.trim())
      .filter((item) => item !== '')
  }

  /** Returns a whole number; `undefined` if the option was left out. @throws CommandError CONFIG_INVALID */
  whole(name: string, least: number, most: number): number | undefined {
    const text = this.value(name)
    if (text === undefined) return undefined
    const number = /^\d{1,15}$/.test(text) ? Number(text) : Number.NaN
    if (number >= least && number <= most) return number
    throw this.invalid(`--${name}`, text, `a whole number of ${least} to ${most}`)
  }

  /** Returns a time in ms; `undefined` if the option was left out. @throws CommandError CONFIG_INVALID */
  time(name: string): number | undefined {
    const text = this.value(name)
    if (text === undefined) return undefined
    const time = milliseconds(text)
    if (time !== undefined) return time
    throw this.invalid(`--${name}`, text, 'a time such as 500ms, 5s, 2m, 1h or 7d')
  }

  /** Returns the error for a part of the line that is not allowed. */
  invalid(name: string, given: string, allowed: string): CommandError {
    return new CommandError('CONFIG_INVALID', [
      `${this.command}: ${name} is ${JSON.stringify(given)}; allowed is ${allowed}`,
    ])
  }
}

const UNIT_MS: Readonly<Record<string, number>> = { ms: 1, s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 }

/** Returns a time such as `5s` in ms; `undefined` for other text. */
export function milliseconds(text: string): number | undefined {
  const [, amount, unit = ''] = /^(\d{1,9}(?:\.\d{1,3})?)(ms|s|m|h|d)$/.exec(text) ?? []
  const factor = UNIT_MS[unit]
  return amount === undefined || factor === undefined ? undefined : Number(amount) * factor
}

/**
 * Reads the words after the name of a command.
 * @throws CommandError CONFIG_INVALID, listing every problem
 */
export function readCommandLine(command: Syntax, args: readonly string[]): CommandLine {
  const { name: commandName, options, usage, words: range } = command
  const names = Object.keys(options)
  const { tokens } = parseArgs({
    args: [...args],
    strict: false,
    tokens: true,
    options: Object.fromEntries(
      names.map((name) => [name, { type: options[name]?.value === undefined ? ('boolean' as const) : 'string' }]),
    ),
  })
  const problems: string[] = []
  const words: string[] = []
  const given = new Map<string, string>()
  let afterUnknown = false
  for (const token of tokens) {
    // The word after an unknown option is most likely its value: one problem is enough.
    if (token.kind === 'positional' && !afterUnknown) words.push(token.value)
    afterUnknown = false
    if (token.kind !== 'option') continue
    const { name, rawName, value, inlineValue } = token
    const known = Object.hasOwn(options, name) ? options[name] : undefined
    if (known === undefined) {
      afterUnknown = value === undefined
      const meant = mostSimilar(name, names)
      problems.push(
        `${rawName}: unknown; ${meant === undefined ? '' : `did you mean --${meant}? `}allowed are ${names.map((each) => `--${each}`).join(', ')}`,
      )
    } else if (given.has(name)) {
      problems.push(`${rawName}: given more than once; allowed: once`)
    } else if (known.value === undefined) {
      if (value === undefined) given.set(name, '')
      else problems.push(`${rawName}: takes no value`)
    } else if (value === undefined || value === '' || (!inlineValue && value.startsWith('--'))) {
      problems.push(`${rawName}: a value is missing; write ${rawName}=${known.value}`)
    } else {
      given.set(name, value)
    }
  }
  problems.push(
    ...names
      .filter((name) => options[name]?.required === true && !given.has(name))
      .map((name) => `--${name} is missing; write --${name}=${options[name]?.value ?? 'VALUE'}`),
  )
  const [least, most] = range
  if (most === 0) problems.push(...words.map((extra) => `${JSON.stringify(extra)}: not an option`))
  else if (words.length < least || words.length > most) problems.push(`allowed is ${usage}`)
  if (problems.length > 0) {
    throw new CommandError(
      'CONFIG_INVALID',
      problems.map((problem) => `${commandName}: ${problem}`),
    )
  }
  return new CommandLine(command, words, given)
}
