import type { ByteBudget, Refusal } from '@signalbox/http-kit'

/** Limits and time-outs of a stream. */
export interface StreamLimits {
  /** The largest event of an agent, in bytes (AgentMaxResponseBytes). @default 10485760 */
  readonly maxEventBytes?: number
  /** The most bytes in transit from the agent's node that the client has not read. @default 262144 */
  readonly windowBytes?: number
  /** The most frames in transit that the client has not read. @default 64 */
  readonly windowFrames?: number
  /** The longest time between two grants of credit, in ms. @default 5000 */
  readonly creditMs?: number
  /** The longest time between two messages of the agent's node, in ms. @default 5000 */
  readonly heartbeatMs?: number
  /**
   * The time without a message of the agent's node after which the stream is interrupted, in ms.
   * @default 15000
   */
  readonly silenceMs?: number
  /**
   * The time without a grant of credit after which the agent's node abandons the stream, in ms.
   * @default 15000
   */
  readonly noCreditMs?: number
  /** The longest time for which a client may stop reading, in ms; 0 is no limit. @default 30000 */
  readonly slowConsumerMs?: number
}

export type ResolvedStreamLimits = Required<StreamLimits>

const DEFAULTS: ResolvedStreamLimits = Object.freeze({
  maxEventBytes: 10_485_760,
  windowBytes: 262_144,
  windowFrames: 64,
  creditMs: 5_000,
  heartbeatMs: 5_000,
  silenceMs: 15_000,
  noCreditMs: 15_000,
  slowConsumerMs: 30_000,
})

export function resolveLimits(limits: StreamLimits): ResolvedStreamLimits {
  return { ...DEFAULTS, ...limits }
}

/** Bytes that a stream may hold uncounted: less than a window, which has a separate budget. */
const FREE_BYTES = 65_536

/** Bytes are counted in steps, so that the parts of an event cost little. */
const STEP_BYTES = 65_536

/**
 * Counts the bytes of the event that one side of a stream is joining, in the budgets of the caller and of the process.
 * Most streams have only small events, and count nothing.
 */
export class EventBytes {
  readonly #budget: ByteBudget | undefined
  #counted = 0

  constructor(budget: ByteBudget | undefined) {
    this.#budget = budget
  }

  /** Sets the number of bytes that are held now. Returns the refusal if a limit is reached. */
  set(bytes: number): Refusal | undefined {
    if (this.#budget === undefined || (bytes <= FREE_BYTES && this.#counted === 0)) return undefined
    const wanted = bytes <= FREE_BYTES ? 0 : Math.ceil(bytes / STEP_BYTES) * STEP_BYTES
    if (wanted < this.#counted) this.#budget.discharge(this.#counted - wanted)
    else {
      const refusal = wanted === this.#counted ? undefined : this.#budget.charge(wanted - this.#counted)
      if (refusal !== undefined) return refusal
    }
    this.#counted = wanted
    return undefined
  }
}
