import { mostSimilar } from '@signalbox/broker-core/internal'

import { COMMANDS } from './catalog/commands.ts'
import type { Command, CommandHost } from './command.ts'
import { readCommandLine } from './command-line.ts'
import type { ExitCode } from './errors.ts'
import { CommandError, EXIT, isCommandError } from './errors.ts'
import type { CommandIo } from './terminal.ts'
import { ClosedOutput } from './terminal.ts'

/** Runs the command that the words name, and returns its exit code. Never rejects. */
export async function runCommand(given: readonly string[], io: CommandIo, host: CommandHost): Promise<ExitCode> {
  const args = verbFirst(given)
  const json = args.includes('--json')
  try {
    const found = findCommand(args)
    if (wantsHelp(args)) {
      const commands = found === undefined ? groupOf(args) : [found.command]
      if (commands.length === 0) throw unknownCommand(args)
      await io.stdout.write(commands.map(commandHelp).join('\n'))
      return EXIT.OK
    }
    if (found === undefined) throw unknownCommand(args)
    const { command, rest } = found
    const line = readCommandLine(command, rest)
    const run = await command.load()
    return (await run({ line, io, host })) ?? EXIT.OK
  } catch (error) {
    if (error instanceof ClosedOutput) return EXIT.OK
    if (io.interrupted !== undefined) return io.interrupted
    try {
      return await report(error, json, io)
    } catch {
      // stderr has no reader.
      return EXIT.FAILED
    }
  }
}

/** Moves options before the verb behind it, and writes `help send` as `send --help`. */
function verbFirst(args: readonly string[]): readonly string[] {
  let at = 0
  while (args[at]?.startsWith('--') === true && args[at] !== '--') {
    const hasValue = args[at]?.includes('=') === true || args[at] === '--json' || args[at] === '--help'
    at += hasValue ? 1 : 2
  }
  const [options, line] = [args.slice(0, at), args.slice(at)]
  const words = line[0] === 'help' ? [...line.slice(1), '--help'] : line
  const found = findCommand(words)
  return found === undefined ? [...words, ...options] : [...found.command.name.split(' '), ...options, ...found.rest]
}

function findCommand(args: readonly string[]): { command: Command; rest: readonly string[] } | undefined {
  const [first = '', second = ''] = args
  const pair = COMMANDS.find(({ name }) => name === `${first} ${second}`)
  if (pair !== undefined) return { command: pair, rest: args.slice(2) }
  const single = COMMANDS.find(({ name }) => name === first)
  if (single !== undefined) return { command: single, rest: args.slice(1) }
  return undefined
}

/** Returns the commands whose first of two words is the first of the line. */
function groupOf([first = '']: readonly string[]): readonly Command[] {
  return COMMANDS.filter(({ name }) => name.startsWith(`${first} `))
}

function wantsHelp(args: readonly string[]): boolean {
  const end = args.indexOf('--')
  const before = end === -1 ? args : args.slice(0, end)
  return before.includes('--help') || before.includes('-h')
}

function unknownCommand(args: readonly string[]): CommandError {
  const [first = ''] = args
  const group = groupOf(args)
  if (group.length > 0) {
    const usages = group.map(({ usage }) => usage)
    return new CommandError('CONFIG_INVALID', [`${first}: allowed is ${usages.join(', or ')}`])
  }
  const meant = mostSimilar(first, [...new Set(COMMANDS.map(({ name }) => name.split(' ')[0] ?? ''))])
  return new CommandError('CONFIG_INVALID', [
    `${JSON.stringify(first)}: unknown command${meant === undefined ? '' : `; did you mean ${meant}?`}; allowed: the commands that --help lists`,
  ])
}

/** Writes the error in one line for each problem, or as one JSON value. Returns the exit code. */
async function report(error: unknown, json: boolean, io: CommandIo): Promise<ExitCode> {
  const failure = await failureFrom(error)
  if (json) {
    await io.stderr.write(
      `${JSON.stringify({ error: { code: failure.code, message: failure.lines.join('\n') }, exit: failure.exit })}\n`,
    )
  } else {
    for (const line of failure.lines) await io.stderr.write(`signalbox: ${line}\n`)
  }
  return failure.exit
}

async function failureFrom(error: unknown): Promise<{ exit: ExitCode; code: string; lines: readonly string[] }> {
  if (isCommandError(error)) {
    return { exit: error.code === 'CONFIG_INVALID' ? EXIT.USAGE : EXIT.FAILED, code: error.code, lines: error.problems }
  }
  // Loaded only now: it imports the client.
  const { failureOf } = await import('./failure.ts')
  const failure = failureOf(error)
  if (failure !== undefined) return { exit: failure.exit, code: failure.code, lines: [failure.message] }
  const message = error instanceof Error ? error.message : String(error)
  return { exit: EXIT.FAILED, code: 'INTERNAL', lines: [`the command failed: ${message}`] }
}

/** Returns the text of `--help` of a command. */
function commandHelp({ usage, summary, options, example }: Command): string {
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
