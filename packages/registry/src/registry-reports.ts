import { isBrokerError } from '@signalbox/broker-core'

import { RegistryError } from './errors.ts'
import type { OperationDetail, RegistryChange, RegistryHooks, RegistryOperation } from './options.ts'

/** Notifies hooks and listeners. Their errors do not affect the registry. */
export class RegistryReports {
  readonly #hooks: RegistryHooks
  readonly #listeners = new Set<(change: RegistryChange) => void>()

  constructor(hooks: RegistryHooks) {
    this.#hooks = hooks
  }

  /** Returns a function that removes the listener. */
  add(listener: (change: RegistryChange) => void): () => void {
    // A separate function, so that the same listener can be added twice and removed once.
    const own = (change: RegistryChange): void => listener(change)
    this.#listeners.add(own)
    return () => {
      this.#listeners.delete(own)
    }
  }

  changed(change: RegistryChange): void {
    for (const listener of this.#listeners) this.notify(listener, change)
  }

  notify(listener: (change: RegistryChange) => void, change: RegistryChange): void {
    try {
      listener(change)
    } catch (error) {
      this.failed(error)
    }
  }

  /** Runs a call and reports its outcome. */
  async counted<T>(op: RegistryOperation, detail: OperationDetail, call: () => Promise<T>): Promise<T> {
    let result: T
    try {
      result = await call()
    } catch (error) {
      this.operation(op, 'error', { ...detail, code: codeOf(error) })
      throw error
    }
    this.operation(op, 'success', detail)
    return result
  }

  operation(op: RegistryOperation, status: 'success' | 'error', detail: OperationDetail): void {
    try {
      this.#hooks.operation?.(op, status, detail)
    } catch {}
  }

  limited(account: string): void {
    try {
      this.#hooks.limited?.({ limit: 'caller_agents', account })
    } catch {}
  }

  failed(error: unknown): void {
    try {
      this.#hooks.failed?.(error)
    } catch {}
  }
}

export function codeOf(error: unknown): string {
  return error instanceof RegistryError || isBrokerError(error) ? error.code : 'INTERNAL'
}
