import { useEffect, useState } from 'preact/hooks'

/** A value that components follow. */
export class Store<T> {
  #value: T
  readonly #listeners = new Set<(value: T) => void>()

  constructor(value: T) {
    this.#value = value
  }

  get value(): T {
    return this.#value
  }

  set(value: T): void {
    if (Object.is(value, this.#value)) return
    this.#value = value
    for (const listener of this.#listeners) listener(value)
  }

  /** Returns a function that ends the subscription. */
  follow(listener: (value: T) => void): () => void {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }
}

/** Returns the value of the store; the component renders again when it changes. */
export function useStore<T>(store: Store<T>): T {
  const [, render] = useState({})
  useEffect(() => store.follow(() => render({})), [store])
  return store.value
}

/** The connection to the server: `lost` after a request that got no answer, until one gets an answer. */
type Connection = 'connected' | 'lost' | 'starting'

export const connection = new Store<Connection>('connected')
