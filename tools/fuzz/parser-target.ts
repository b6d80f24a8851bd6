import type { Arbitrary } from 'fast-check'

import { Finding, MAX_INPUT_MS } from './target.ts'
import type { Target } from './target.ts'

export interface ParserSource<Input> {
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
        throw error instanceof Finding ? error : new Finding('threw', text(error), { cause: error })
      }
      const { user, system } = process.threadCpuUsage(before)
      least = Math.min(least, (user + system) / 1000)
      if (least <= maxMs) return
    }
    throw new Finding('slow', `one input takes ${Math.round(least)} ms`)
  }
  return { name, about, weight: 1, input, open: async () => ({ check, async [Symbol.asyncDispose]() {} }) }
}

function text(error: unknown): string {
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
