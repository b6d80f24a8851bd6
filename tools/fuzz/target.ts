import type { Arbitrary } from 'fast-check'

/** The promise that an input broke. */
export type FindingKind =
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
