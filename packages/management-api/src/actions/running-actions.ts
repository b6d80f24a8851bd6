import type { ServerResponse } from 'node:http'

/** Actions under way: each ends when its client goes away, and all when the server shuts down. */
export class RunningActions {
  readonly #running = new Map<ServerResponse, AbortController>()
  #ended = false

  /** @returns a signal that is aborted when nobody waits for the result any more */
  begin(response: ServerResponse): AbortSignal {
    const controller = new AbortController()
    this.#running.set(response, controller)
    response.once('close', () => controller.abort())
    if (this.#ended) controller.abort()
    return controller.signal
  }

  finish(response: ServerResponse): void {
    this.#running.delete(response)
  }

  endAll(): void {
    this.#ended = true
    for (const controller of this.#running.values()) controller.abort()
  }
}
