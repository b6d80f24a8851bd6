import type { Arbitrary } from 'fast-check'

/** Which promise an input broke. */
export type FindingKind =
  /** A parser threw something that is none of its declared errors. */
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
  /** The server's event loop was held for longer than {@link MAX_INPUT_MS}. */
  | 'blocked'
  /** Memory did not come back after a collection. */
  | 'heap'
  /** A message that was acknowledged is gone. */
  | 'lost'
  /** A file appeared outside the store. */
  | 'file'

/** What one input may cost, in milliseconds of CPU time of one thread. */
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

/** A target that is ready to take inputs. */
export interface OpenTarget extends AsyncDisposable {
  /** @throws Finding when the input breaks a promise */
  check(input: unknown): Promise<void>
  /** Checks what shows only over many inputs. @throws Finding */
  settle?(): Promise<void>
}

/** Something that takes input from strangers. */
export interface Target {
  readonly name: string
  readonly about: string
  /** Its share of a run's time; a parser in process has 1. */
  readonly weight: number
  /** Inputs are plain JSON values, so that a file can hold them. */
  readonly input: Arbitrary<unknown>
  open(): Promise<OpenTarget>
}
