import { createHash } from 'node:crypto'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

import type { Arbitrary } from 'fast-check'

/** The promise that an input broke. */
type FindingKind =
  /** A parser threw an error that it does not declare. */
  | 'threw'
  /** One input took more than {@link MAX_INPUT_MS} of CPU time. */
  | 'slow'
  /** The result contradicts a second reader, or itself. */
  | 'wrong'
  /** HTTP 500, -32603, or an answer that is not HTTP. */
  | 'answer'
  /** The server ended. */
  | 'died'
  /** The server ended and does not start again: its target takes no more inputs. */
  | 'gone'
  /** The server logged an error. */
  | 'logged'
  /** The server's event loop was blocked for longer than {@link MAX_INPUT_MS}. */
  | 'blocked'
  /** Memory was not released after a collection. */
  | 'heap'
  /** An acknowledged message is lost. */
  | 'lost'
  /** A file appeared outside the store. */
  | 'file'

/** The CPU time limit of one input, in milliseconds of one thread. */
export const MAX_INPUT_MS = 100

/** A broken promise. */
export class Finding extends Error {
  override readonly name = 'Finding'
  readonly kind: FindingKind

  constructor(kind: FindingKind, message: string, options?: ErrorOptions) {
    super(message, options)
    this.kind = kind
  }
}

/** Returns the finding of a failed check: an error of another class is one too, so that it does not end the run. */
export function findingOf(error: unknown): Finding {
  return error instanceof Finding ? error : new Finding('threw', errorText(error), { cause: error })
}

/** A target that is ready for inputs. */
export interface OpenTarget extends AsyncDisposable {
  /** @throws Finding if the input breaks a promise */
  check(input: unknown): Promise<void>
  /** Checks the properties that show only over many inputs. @throws Finding */
  settle?(): Promise<void>
}

/** A part of the product that accepts input from strangers. */
export interface Target {
  readonly name: string
  readonly about: string
  /** The target's share of a run's time; a parser in process has 1. */
  readonly weight: number
  /** Inputs are plain JSON values, so that a file can store them. */
  readonly input: Arbitrary<unknown>
  open(): Promise<OpenTarget>
}

/** A stored input that broke a promise. */
interface StoredInput {
  readonly target: string
  /** A description of the fault; the name of the regression. */
  readonly name: string
  readonly input: unknown
  readonly kind?: FindingKind
  readonly seed?: number
}

/**
 * Returns a key that is equal for two findings of probably one cause: the error and its origin, otherwise the promise
 * without its values.
 */
export function signatureOf(target: string, { kind, message, cause }: Finding): string {
  const frame = cause instanceof Error ? ownFrame(cause) : ''
  if (cause instanceof Error && frame !== '') return `${target} ${kind} ${cause.name} ${frame}`
  const plain = message.replace(/: got .*/s, '').replaceAll(/"(?:[^"\\]|\\.)*"/gs, '""')
  return `${target} ${kind} ${plain.replaceAll(/\d+/g, '0').slice(0, 160)}`
}

/** Returns the innermost Signalbox function in a stack. */
function ownFrame({ stack = '' }: Error): string {
  return /at (\S+) \([^)]*\/(?:packages|apps)\/[^)]*\)/.exec(stack)?.[1] ?? ''
}

/** Writes a finding and returns the file, named after its cause. */
export function storeFinding(folder: string, stored: StoredInput, signature: string): string {
  mkdirSync(folder, { recursive: true })
  const hash = createHash('sha256').update(signature).digest('hex').slice(0, 8)
  const file = join(folder, `${stored.target}-${hash}.json`)
  writeFileSync(file, `${JSON.stringify(stored, undefined, 2)}\n`)
  return file
}

export function readInput(file: string): StoredInput {
  const value: unknown = JSON.parse(readFileSync(file, 'utf8'))
  if (typeof value === 'object' && value !== null && 'target' in value && 'input' in value) return value as StoredInput
  throw new Error(`${file} holds no input; it must be {target, name, input}`)
}

/** Runs a stored input against its target. @returns the broken promise, or `undefined` */
export async function replay(
  targets: readonly Target[],
  { target: name, input }: StoredInput,
): Promise<Finding | undefined> {
  const target = targets.find((candidate) => candidate.name === name)
  if (target === undefined) throw new Error(`no such target: ${name}`)
  await using open = await target.open()
  try {
    await open.check(input)
    await open.settle?.()
    return undefined
  } catch (error) {
    return findingOf(error)
  }
}

interface ParserSource<Input> {
  readonly name: string
  readonly about: string
  readonly input: Arbitrary<Input>
  /** The CPU time limit of one input, in milliseconds. @default 100 */
  readonly maxMs?: number
  /** Reads the input; throws an error that the parser does not declare, or a Finding. */
  check(input: Input): void | Promise<void>
}

/**
 * The number of repeated reads of an input that took too long: the first read includes the compiler and the collector.
 */
const SECOND_LOOKS = 3

/**
 * A parser that is called in process. It counts the CPU time of the thread, so that a busy machine causes no finding.
 */
export function parserTarget<Input>(source: ParserSource<Input>): Target {
  const { name, about, input, maxMs = MAX_INPUT_MS } = source
  async function check(given: unknown): Promise<void> {
    let least = Number.POSITIVE_INFINITY
    for (let look = 0; look <= SECOND_LOOKS; look++) {
      const before = process.threadCpuUsage()
      try {
        // This target wrote the inputs that are replayed from files.
        await source.check(given as Input)
      } catch (error) {
        throw findingOf(error)
      }
      const { user, system } = process.threadCpuUsage(before)
      least = Math.min(least, (user + system) / 1000)
      if (least <= maxMs) return
    }
    throw new Finding('slow', `one input takes ${Math.round(least)} ms`)
  }
  return { name, about, weight: 1, input, open: async () => ({ check, async [Symbol.asyncDispose]() {} }) }
}

function errorText(error: unknown): string {
  return error instanceof Error ? `${error.name}: ${error.message}` : String(error)
}

type ErrorClass = abstract new (...args: never) => Error

/** Returns the result of a parser, or `undefined` if it refuses the input with one of its declared errors. */
export function resultOf<T>(parse: () => T, ...declared: readonly ErrorClass[]): T | undefined {
  try {
    return parse()
  } catch (error) {
    if (declared.some((known) => error instanceof known)) return undefined
    throw error
  }
}

/** @throws Finding unless both print as the same JSON */
export function assertSame(what: string, got: unknown, wanted: unknown): void {
  const [gotText = 'nothing', wantedText = 'nothing'] = [got, wanted].map((value) => JSON.stringify(value))
  if (gotText !== wantedText) {
    throw new Finding('wrong', `${what}: got ${gotText.slice(0, 200)}, wanted ${wantedText.slice(0, 200)}`)
  }
}

/** @throws Finding unless the condition holds */
export function assertHolds(what: string, holds: boolean): void {
  if (!holds) throw new Finding('wrong', what)
}
