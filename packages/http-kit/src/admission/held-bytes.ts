import type { AdmissionControl } from './admission-control.ts'
import type { Account } from './account.ts'
import type { Refusal } from './refusal.ts'

/** Counts bytes in the budgets of a caller and of the process. */
export interface ByteBudget {
  /** Counts bytes until they are discharged or released. Returns the refusal if a limit is reached. */
  charge(bytes: number): Refusal | undefined
  /** Subtracts bytes that {@link charge} counted. */
  discharge(bytes: number): void
}

/**
 * The bytes that work for a caller holds apart from the caller's requests: the work runs on another node, or it
 * continues after the request was answered.
 */
export class HeldBytes implements ByteBudget {
  readonly #control: AdmissionControl
  readonly #key: string
  #account: Account | undefined
  #bytes = 0

  /** @param key The caller's key: `client:{ClientID}` or `address:{network}` */
  constructor(control: AdmissionControl, key: string) {
    this.#control = control
    this.#key = key
  }

  get bytes(): number {
    return this.#bytes
  }

  charge(bytes: number): Refusal | undefined {
    const account = this.#current
    const refusal = this.#control.charge(account, bytes)
    if (refusal === undefined) this.#bytes += bytes
    return refusal
  }

  discharge(bytes: number): void {
    this.#bytes -= bytes
    this.#control.discharge(this.#current, bytes)
  }

  /** Returns the refusal of a reply of this size if memory is short. */
  refusesBody(bytes: number): Refusal | undefined {
    return this.#control.refusesBody(this.#current, bytes)
  }

  /** Subtracts all bytes. */
  release(): void {
    if (this.#bytes > 0) this.discharge(this.#bytes)
  }

  /** An account that holds nothing may have been dropped; one that holds bytes is kept. */
  get #current(): Account {
    if (this.#account === undefined || this.#account.forgotten) this.#account = this.#control.accountOf(this.#key)
    return this.#account
  }
}
