import { parseArgs } from 'node:util'

/** An option of a command. */
interface Option<T> {
  /** The name of its value in the help; empty for a flag. */
  readonly value: string
  readonly about: string
  readonly multiple?: boolean
  readonly read: (given: Given, name: string) => T
}

type Given = string | boolean | (string | boolean)[] | undefined

type Options = Readonly<Record<string, Option<unknown>>>

interface CommandLine<O extends Options> {
  readonly values: { readonly [Name in keyof O]: O[Name] extends Option<infer T> ? T : never }
  readonly positionals: readonly string[]
}

/** A number of at least 0. */
export function number(value: string, about: string): Option<number | undefined>
export function number(value: string, about: string, fallback: number): Option<number>
export function number(value: string, about: string, fallback?: number): Option<number | undefined> {
  const read = (given: Given, name: string): number | undefined => {
    if (given === undefined) return fallback
    if (Number(given) >= 0) return Number(given)
    throw new RangeError(`--${name} is ${String(given)}; it must be a number of at least 0`)
  }
  return { value, about: withDefault(about, fallback), read }
}

export function text(value: string, about: string): Option<string | undefined>
export function text(value: string, about: string, fallback: string): Option<string>
export function text(value: string, about: string, fallback?: string): Option<string | undefined> {
  const read = (given: Given) => (given === undefined ? fallback : String(given))
  return { value, about: withDefault(about, fallback), read }
}

/** Values with commas between them. The option may be repeated. */
export function list(value: string, about: string): Option<readonly string[] | undefined> {
  return { value, about, multiple: true, read: (given) => (given === undefined ? undefined : String(given).split(',')) }
}

export function flag(about: string): Option<boolean> {
  return { value: '', about, read: (given) => given === true }
}

function withDefault(about: string, fallback: number | string | undefined): string {
  return fallback === undefined ? about : `${about} (default ${fallback})`
}

/**
 * Reads the arguments of a command. With `--help` it prints the description and the options, and ends the process.
 * @param text The usage, a description, and lines for the end of the help
 * @throws Error for an unknown option or an invalid value
 */
export function commandLine<const O extends Options>(
  { usage, about, end = '' }: { readonly usage: string; readonly about: string; readonly end?: string },
  options: O,
  args: readonly string[] = process.argv.slice(2),
): CommandLine<O> {
  const all = Object.entries(options)
  const types = all.map(
    ([name, { value, multiple = false }]) => [name, { type: value === '' ? 'boolean' : 'string', multiple }] as const,
  )
  const { values: given, positionals } = parseArgs({
    args: [...args],
    allowPositionals: true,
    options: { ...Object.fromEntries(types), help: { type: 'boolean' } },
  })
  if (given.help === true) {
    const names = all.map(([name, { value }]) => `--${name} ${value}`.trim())
    const width = Math.max(...names.map((name) => name.length))
    const lines = all.map((option, i) => `  ${names[i]?.padEnd(width)}  ${option[1].about}`)
    process.stdout.write(`${[usage, about, lines.join('\n'), end].filter((part) => part !== '').join('\n\n')}\n`)
    process.exit(0)
  }
  const values = all.map(([name, { read }]) => [name, read(Reflect.get(given, name) as Given, name)])
  return { values: Object.fromEntries(values) as CommandLine<O>['values'], positionals }
}

/** Prints a line of the result. */
export function print(line: string): void {
  process.stdout.write(`${line}\n`)
}

/** Prints the problems of a run, and makes the process exit with 1 if there are any. */
export function conclude(problems: readonly string[]): void {
  for (const problem of problems) print(`! ${problem}`)
  if (problems.length > 0) process.exitCode = 1
}

/** Shows the progress of a run, apart from its result. */
export function progress(line: string): void {
  process.stderr.write(`${line}\n`)
}
