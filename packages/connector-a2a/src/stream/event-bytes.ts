import type { ByteBudget, Refusal } from '@signalbox/http-kit'

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
